/*
 * lib/expressions.js: conditions, filters, projections and updates, with names and values of one's own.
 *
 *     { total: 5, day: between(1, 3) }            attributes that equal, or are what the operator says
 *     expr`${attr('total')} > ${5} AND NOT contains(${attr('tags')}, ${'old'})`
 *     'total > :min'  with  { values: { min: 5 } }
 *
 * Paths are names separated by dots, with [0] for elements of lists: 'address.lines[0]'. A name with a
 * dot in it is an array: attr(['a.b']).
 */
'use strict';
const { toValue } = require('./values');
const { invalid } = require('./errors');

class Operator {
    constructor(render) {
        this.render = render; /* (path, value) => text; value() gives an operand's placeholder */
    }
}

const compare = (sign) => (operand) => new Operator((path, value) => `${path} ${sign} ${value(operand)}`);
const eq = compare('=');
const ne = compare('<>');
const lt = compare('<');
const le = compare('<=');
const gt = compare('>');
const ge = compare('>=');
const between = (low, high) => new Operator((path, value) => `${path} BETWEEN ${value(low)} AND ${value(high)}`);
const beginsWith = (prefix) => new Operator((path, value) => `begins_with(${path}, ${value(prefix)})`);
const contains = (member) => new Operator((path, value) => `contains(${path}, ${value(member)})`);
const oneOf = (...operands) => new Operator((path, value) => `${path} IN (${operands.map(value).join(', ')})`);
const exists = () => new Operator((path) => `attribute_exists(${path})`);
const missing = () => new Operator((path) => `attribute_not_exists(${path})`);

class Attribute {
    constructor(path) {
        this.path = path;
    }
}
const attr = (path) => new Attribute(path);

class Expression {
    constructor(strings, operands) {
        this.strings = strings;
        this.operands = operands;
    }
}
const expr = (strings, ...operands) => new Expression(strings, operands);

function steps(path) {
    if (Array.isArray(path))
        return path.map((name) => ({ name: String(name), rest: '' }));
    return String(path).split('.').map((step) => {
        const found = /^([^[\]]+)((?:\[\d+\])*)$/.exec(step);
        if (!found)
            throw invalid(`"${path}" is not a path: names separated by dots, with [0] for elements of lists`);
        return { name: found[1], rest: found[2] };
    });
}

/* What the expressions of one request share. */
class Placeholders {
    constructor(options = {}) {
        this.names = new Map();
        this.values = new Map();
        this.given = {};
        this.givenNames = {};
        for (const [name, value] of Object.entries(options.values ?? {}))
            this.given[name.startsWith(':') ? name : `:${name}`] = toValue(value, name);
        for (const [name, value] of Object.entries(options.names ?? {}))
            this.givenNames[name.startsWith('#') ? name : `#${name}`] = value;
    }

    path(path) {
        return steps(path).map(({ name, rest }) => {
            if (!this.names.has(name))
                this.names.set(name, `#_${this.names.size}`);
            return this.names.get(name) + rest;
        }).join('.');
    }

    value(value, path) {
        const name = `:_${this.values.size}`;
        this.values.set(name, toValue(value, path));
        return name;
    }

    /* The text of an Expression. */
    text(expression) {
        return expression.strings.reduce((text, part, i) => {
            const operand = expression.operands[i - 1];
            const shown = operand instanceof Attribute ? this.path(operand.path)
                : operand instanceof Expression ? this.text(operand)
                : this.value(operand);
            return text + shown + part;
        });
    }

    /* A condition, in any of its three forms; undefined when there is none. */
    condition(condition, what) {
        if (condition === undefined)
            return undefined;
        if (typeof condition === 'string')
            return condition;
        if (condition instanceof Expression)
            return this.text(condition);
        if (condition === null || typeof condition !== 'object' || condition instanceof Operator)
            throw invalid(`${what} is a string, an expr\`...\` or an object of attributes`);
        const parts = Object.entries(condition).filter(([, value]) => value !== undefined).map(([path, value]) =>
            value instanceof Operator ? value.render(this.path(path), (operand) => this.value(operand, path))
                : `${this.path(path)} = ${value instanceof Expression ? this.text(value) : this.value(value, path)}`);
        if (parts.length === 0)
            throw invalid(`${what} has no attributes`);
        return parts.join(' AND ');
    }

    projection(attributes) {
        if (attributes === undefined)
            return undefined;
        if (typeof attributes === 'string')
            return attributes;
        return attributes.map((path) => this.path(path)).join(', ');
    }

    /* { set, add, remove, delete }, or an expression. */
    update(update) {
        if (typeof update === 'string')
            return update;
        if (update instanceof Expression)
            return this.text(update);
        const known = ['set', 'add', 'remove', 'delete'];
        const strange = Object.keys(update).find((name) => !known.includes(name));
        if (strange !== undefined)
            throw invalid(`an update has set, add, remove and delete, not ${strange}: did you mean { set: { ${strange}: ... } }?`);
        const operand = (path, value) => (value instanceof Expression ? this.text(value) : this.value(value, path));
        const clauses = [];
        const pairs = (word, map, sign) => {
            const list = Object.entries(map ?? {}).filter(([, value]) => value !== undefined)
                .map(([path, value]) => `${this.path(path)}${sign}${operand(path, value)}`);
            if (list.length)
                clauses.push(`${word} ${list.join(', ')}`);
        };
        pairs('SET', update.set, ' = ');
        pairs('ADD', update.add, ' ');
        pairs('DELETE', update.delete, ' ');
        if (update.remove?.length)
            clauses.push(`REMOVE ${update.remove.map((path) => this.path(path)).join(', ')}`);
        if (clauses.length === 0)
            throw invalid('the update changes nothing: it has no set, add, remove or delete');
        return clauses.join(' ');
    }

    /* Add what was used to the request. */
    into(request) {
        const names = { ...this.givenNames };
        for (const [name, placeholder] of this.names)
            names[placeholder] = name;
        if (Object.keys(names).length)
            request.ExpressionAttributeNames = names;
        const values = { ...this.given, ...Object.fromEntries(this.values) };
        if (Object.keys(values).length)
            request.ExpressionAttributeValues = values;
        return request;
    }
}

module.exports = {
    Placeholders, Expression, expr, attr,
    operators: { eq, ne, lt, le, gt, ge, between, beginsWith, contains, oneOf, exists, missing },
};
