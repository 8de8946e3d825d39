/*
 * lib/patterns.js: what a Database has besides items.
 */
'use strict';
const { coordination } = require('./coordination');
const { messages } = require('./messages');
const { events } = require('./events');

module.exports = { patterns: { ...coordination, ...messages, ...events } };
