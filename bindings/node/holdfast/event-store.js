'use strict';
module.exports = require('./lib/event-store');
