'use strict';
module.exports = require('./lib/outbox-event-bus');
