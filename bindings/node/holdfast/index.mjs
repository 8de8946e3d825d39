import holdfast from './index.js';

export const {
    open, Database, Transaction, HoldfastError, PermanentError, NumberValue, startServer,
    expr, attr, eq, ne, lt, le, gt, ge, between, beginsWith, contains, oneOf, exists, missing,
} = holdfast;
export default holdfast;
