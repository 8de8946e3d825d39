'use strict';
const { open, Database } = require('./lib/database');
const { HoldfastError } = require('./lib/errors');
const { NumberValue } = require('./lib/values');
const { Transaction } = require('./lib/transaction');
const { expr, attr, operators } = require('./lib/expressions');
const { PermanentError } = require('./lib/messages');
const { startServer } = require('./lib/server');

module.exports = {
    open, Database, Transaction, HoldfastError, PermanentError, NumberValue, expr, attr, ...operators, startServer,
};
