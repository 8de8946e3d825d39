/* views/create_table.js: the dialog that makes a table, and the one that adds an index. */
import { add, fill, h } from '../lib/dom.js';
import { db } from '../lib/client.js';
import { button, code, dialog, field, select, toast } from '../lib/ui.js';

const SCALARS = [['S', 'String'], ['N', 'Number'], ['B', 'Binary']];

function keyFields(prefix, state, optional) {
    const name = h('input', { type: 'text', required: !optional, autocomplete: 'off', spellcheck: 'false', value: state.name || '', oninput: (e) => { state.name = e.target.value.trim(); state.changed(); } });
    const type = select(SCALARS, state.type, (v) => { state.type = v; state.changed(); }, { 'aria-label': `Type of the ${prefix}` });
    return h('div.bar.end', field(optional ? `${prefix} (optional)` : prefix, name), type);
}

function indexFields(index, state, remove) {
    const extra = h('input', { type: 'text', placeholder: 'names, with commas', 'aria-label': 'Attributes to include', hidden: true, oninput: (e) => { index.include = e.target.value; state.changed(); } });
    return h('fieldset', h('legend', index.local ? 'Local index' : 'Global index'), h('div.fields',
        field('Name', h('input', { type: 'text', required: true, autocomplete: 'off', oninput: (e) => { index.name = e.target.value.trim(); state.changed(); } })),
        !index.local && keyFields('Partition key', index.hash), keyFields('Sort key', index.range, !index.local),
        field('Projection', select([['ALL', 'All attributes'], ['KEYS_ONLY', 'Keys only'], ['INCLUDE', 'Keys and …']], 'ALL', (v) => { index.projection = v; extra.hidden = v !== 'INCLUDE'; state.changed(); })), extra),
    remove && button('Remove index', remove, { class: 'small' }));
}

export function newIndex(local, changed) {
    return { local, projection: 'ALL', include: '', name: '', hash: { type: 'S', changed }, range: { type: 'S', changed } };
}

function schemaOf(hash, range, types) {
    const keys = [];
    for (const [part, kind] of [[hash, 'HASH'], [range, 'RANGE']])
        if (part?.name) {
            keys.push({ AttributeName: part.name, KeyType: kind });
            types.set(part.name, part.type);
        }
    return keys;
}

function indexRequest(index, hash, types) {
    const projection = { ProjectionType: index.projection };
    if (index.projection === 'INCLUDE')
        projection.NonKeyAttributes = index.include.split(',').map((s) => s.trim()).filter(Boolean);
    return { IndexName: index.name, KeySchema: schemaOf(index.local ? hash : index.hash, index.range, types), Projection: projection };
}

export function requestOf(state) {
    const types = new Map(), request = { TableName: state.table, KeySchema: schemaOf(state.hash, state.range, types), BillingMode: state.billing };
    if (state.billing === 'PROVISIONED')
        request.ProvisionedThroughput = { ReadCapacityUnits: state.read, WriteCapacityUnits: state.write };
    for (const [name, local] of [['GlobalSecondaryIndexes', false], ['LocalSecondaryIndexes', true]]) {
        const some = state.indexes.filter((i) => i.local === local).map((i) => ({ ...indexRequest(i, state.hash, types),
            ...(state.billing === 'PROVISIONED' && !local ? { ProvisionedThroughput: request.ProvisionedThroughput } : {}) }));
        if (some.length)
            request[name] = some;
    }
    request.AttributeDefinitions = [...types].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType }));
    if (state.stream)
        request.StreamSpecification = { StreamEnabled: true, StreamViewType: state.stream };
    return request;
}

export async function createTable(ctx, done) {
    const shown = h('div'), list = h('div.panel');
    const state = { table: '', billing: 'PAY_PER_REQUEST', read: 5, write: 5, indexes: [], stream: '', ttl: '' };
    const changed = state.changed = () => fill(shown, code(JSON.stringify(requestOf(state), null, 2), 'Copy request'));
    state.hash = { type: 'S', changed };
    state.range = { type: 'S', changed };
    const addIndex = (local) => {
        const index = newIndex(local, changed);
        state.indexes.push(index);
        const node = indexFields(index, state, () => { node.remove(); state.indexes.splice(state.indexes.indexOf(index), 1); changed(); });
        add(list, node);
        node.querySelector('input').focus();
        changed();
    };
    const units = (name, label) => field(label, h('input', { type: 'number', min: 1, value: state[name], oninput: (e) => { state[name] = Number(e.target.value); changed(); } }));
    const capacity = h('div.fields', { hidden: true }, units('read', 'Read units'), units('write', 'Write units'));
    changed();
    await dialog({
        title: 'Create table', wide: true,
        body: [
            field('Name', h('input', { type: 'text', required: true, minlength: 3, maxlength: 255, pattern: '[A-Za-z0-9_.\\-]+', autocomplete: 'off', spellcheck: 'false', autofocus: true, oninput: (e) => { state.table = e.target.value.trim(); changed(); } }), '3 to 255 letters, digits, dots, hyphens and underscores'),
            h('div.fields', keyFields('Partition key', state.hash), keyFields('Sort key', state.range, true)),
            list, h('div.bar', button('Add global index', () => addIndex(false)), button('Add local index', () => addIndex(true))),
            h('div.fields',
                field('Capacity', select([['PAY_PER_REQUEST', 'On demand'], ['PROVISIONED', 'Provisioned']], state.billing, (v) => { state.billing = v; capacity.hidden = v !== 'PROVISIONED'; changed(); })),
                field('Stream', select([['', 'None'], ['NEW_AND_OLD_IMAGES', 'New and old images'], ['NEW_IMAGE', 'New images'], ['OLD_IMAGE', 'Old images'], ['KEYS_ONLY', 'Keys only']], '', (v) => { state.stream = v; changed(); })),
                field('Time to live', h('input', { type: 'text', autocomplete: 'off', oninput: (e) => { state.ttl = e.target.value.trim(); } }), 'Attribute with the time in seconds since 1970; empty: none')),
            capacity,
            h('details', h('summary', 'The request'), shown),
        ],
        actions: [{ text: 'Cancel' }, { text: 'Create table', kind: 'primary', run: async () => {
            await ctx.db('CreateTable', requestOf(state));
            if (state.ttl) {
                await ctx.db('UpdateTimeToLive', { TableName: state.table, TimeToLiveSpecification: { Enabled: true, AttributeName: state.ttl } });
            }
            toast(`Table ${state.table} is made.`, 'good');
            done(state.table);
        } }],
    });
}

/* Add a global index to a table that is there. */
export async function addIndex(table, done) {
    const state = { changed: () => { } }, index = newIndex(false, state.changed);
    await dialog({
        title: `Add an index to ${table.TableName}`, body: indexFields(index, state),
        actions: [{ text: 'Cancel' }, { text: 'Add index', kind: 'primary', run: async () => {
            const types = new Map(table.AttributeDefinitions.map((a) => [a.AttributeName, a.AttributeType])), create = indexRequest(index, null, types);
            if (table.BillingModeSummary?.BillingMode !== 'PAY_PER_REQUEST' && table.ProvisionedThroughput?.ReadCapacityUnits)
                create.ProvisionedThroughput = { ReadCapacityUnits: table.ProvisionedThroughput.ReadCapacityUnits, WriteCapacityUnits: table.ProvisionedThroughput.WriteCapacityUnits };
            await db('UpdateTable', { TableName: table.TableName, AttributeDefinitions: [...types].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })), GlobalSecondaryIndexUpdates: [{ Create: create }] });
            toast(`Index ${index.name} is being filled.`, 'good');
            done();
        } }],
    });
}
