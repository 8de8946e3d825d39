/* views/table.js: the settings of a table: keys, indexes, stream, time to live, tags, policy, backups, deleting it. */
import { add, debounce, h } from '../lib/dom.js';
import { go, href } from '../lib/router.js';
import { bytesText, count, timeNode } from '../lib/time.js';
import { badge, button, confirm, copy, dialog, facts, field, load, panel, select, toast, toastProblem, writeButton } from '../lib/ui.js';
import { addIndex } from './create_table.js';
import { tableHead } from './items.js';
import { createBackup } from './backups.js';
import { touched } from './shared.js';

const keys = (of) => of.KeySchema.map((k) => `${k.AttributeName} ${k.KeyType === 'HASH' ? '(partition)' : '(sort)'}`).join(', ');
const plain = (heads, rows) => h('div.grid.plain', h('table', h('thead', h('tr', heads.map((text) => h('th', { scope: 'col' }, text)))), h('tbody', rows.map((row) => h('tr', row.map((one) => h('td', one)))))));

export default {
    title: 'Table',
    async open(root, params, ctx) {
        const name = params.table, place = h('div.view');
        tableHead(ctx, name, 'settings');
        add(root, place);
        const act = (work, said) => async () => {
            try {
                if (await work() !== false && said)
                    toast(said, 'good');
                reload();
            } catch (problem) {
                toastProblem(problem);
            }
        };
        /* What not every database has says so in its place. */
        const optional = async (work) => {
            try {
                return await work();
            } catch (problem) {
                if (problem.code === 'Canceled' || problem.code === 'Unreachable')
                    throw problem;
                return { problem };
            }
        };

        async function content() {
            const { Table: t } = await ctx.db('DescribeTable', { TableName: name }), arn = t.TableArn;
            const [ttl, tags, policy, backups] = await Promise.all([
                optional(() => ctx.db('DescribeTimeToLive', { TableName: name })), optional(() => ctx.db('ListTagsOfResource', { ResourceArn: arn })),
                optional(() => ctx.db('GetResourcePolicy', { ResourceArn: arn })), optional(() => ctx.db('ListBackups', { TableName: name }))]);
            const indexes = [...(t.GlobalSecondaryIndexes || []).map((i) => ['global', i]), ...(t.LocalSecondaryIndexes || []).map((i) => ['local', i])];
            const state = t.TableStatus, ttlOn = ttl.TimeToLiveDescription?.TimeToLiveStatus, stream = t.StreamSpecification;
            if (state !== 'ACTIVE' || indexes.some(([, i]) => i.IndexStatus && i.IndexStatus !== 'ACTIVE'))
                again();
            return h('div.view', h('div.columns2',
                panel('Table', facts([
                    ['State', badge(state.toLowerCase(), state === 'ACTIVE' ? 'good' : 'warn')],
                    ['Key', h('span.mono', keys(t))],
                    ['Items', `${count(t.ItemCount)}, ${bytesText(t.TableSizeBytes)}${t.ItemCount ? `, ${bytesText(t.TableSizeBytes / t.ItemCount)} each` : ''}`],
                    ['Created', timeNode(t.CreationDateTime * 1000)],
                    ['Capacity', t.BillingModeSummary?.BillingMode === 'PAY_PER_REQUEST' ? 'on demand' : `${t.ProvisionedThroughput.ReadCapacityUnits} read, ${t.ProvisionedThroughput.WriteCapacityUnits} write units`],
                    ['Deletion protection', t.DeletionProtectionEnabled ? 'on' : 'off'],
                    ['ARN', [h('code', arn), ' ', button('Copy', () => copy(arn), { class: 'small' })]]]),
                h('div.actions', writeButton('Capacity…', capacity),
                    writeButton(t.DeletionProtectionEnabled ? 'Allow deletion' : 'Protect from deletion', act(() => ctx.db('UpdateTable', { TableName: name, DeletionProtectionEnabled: !t.DeletionProtectionEnabled }), 'Changed.')))),
                panel('Attributes of keys', facts(t.AttributeDefinitions.map((a) => [a.AttributeName, { S: 'String', N: 'Number', B: 'Binary' }[a.AttributeType]])))),
            panel('Indexes',
                indexes.length ? plain(['Name', 'Kind', 'Key', 'Projection', 'Items', 'State', ''], indexes.map(([kind, i]) => [
                    h('a', { href: href('/tables', name, 'items', { index: i.IndexName, mode: 'query' }) }, i.IndexName), kind, h('span.mono', keys(i)),
                    i.Projection.ProjectionType === 'INCLUDE' ? `keys, ${i.Projection.NonKeyAttributes.join(', ')}` : i.Projection.ProjectionType.toLowerCase().replace('_', ' '),
                    count(i.ItemCount), i.IndexStatus ? badge(i.IndexStatus.toLowerCase(), i.IndexStatus === 'ACTIVE' ? 'good' : 'warn') : '',
                    kind === 'global' ? writeButton('Delete', () => dropIndex(i.IndexName), { class: 'small danger' }) : h('span.muted', 'stays with the table')])) : h('p.muted', 'None. A query by another attribute than the key needs one.'),
                h('div.actions', writeButton('Add global index', () => addIndex(t, reload)))),
            h('div.columns2',
                panel('Stream', facts([['State', stream?.StreamEnabled ? badge('on', 'good') : badge('off')], ['Images', stream?.StreamViewType?.toLowerCase().replaceAll('_', ' ')], ['ARN', t.LatestStreamArn && h('code', t.LatestStreamArn)]]),
                    h('div.actions', stream?.StreamEnabled ? [h('a.button', { href: href('/tables', name, 'stream') }, 'Look at it'), writeButton('Turn off', () => streamOff(), { class: 'danger' })] : writeButton('Turn on…', streamOn))),
                panel('Time to live', ttl.problem ? h('p.muted', ttl.problem.message) : facts([['State', badge({ ENABLED: 'on', DISABLED: 'off' }[ttlOn] || ttlOn?.toLowerCase() || 'off', ttlOn === 'ENABLED' ? 'good' : '')], ['Attribute', ttl.TimeToLiveDescription.AttributeName && h('code', ttl.TimeToLiveDescription.AttributeName)]]),
                    !ttl.problem && h('div.actions', ttlOn === 'ENABLED' ? writeButton('Turn off', act(() => ctx.db('UpdateTimeToLive', { TableName: name, TimeToLiveSpecification: { Enabled: false, AttributeName: ttl.TimeToLiveDescription.AttributeName } }), 'Items expire no longer.')) : writeButton('Turn on…', ttlDialog))),
                panel('Tags', tags.problem ? h('p.muted', tags.problem.message) : tags.Tags?.length ? plain(['Name', 'Value', ''], tags.Tags.map((tag) => [h('code', tag.Key), tag.Value, writeButton('Remove', act(() => ctx.db('UntagResource', { ResourceArn: arn, TagKeys: [tag.Key] })), { class: 'small' })])) : h('p.muted', 'None.'),
                    !tags.problem && h('div.actions', writeButton('Add tag…', () => tagDialog(arn)))),
                panel('Policy', policy.problem && policy.problem.code !== 'PolicyNotFoundException' ? h('p.muted', policy.problem.message) : policy.Policy ? h('div.code', h('pre', { tabindex: '0' }, pretty(policy.Policy))) : h('p.muted', 'None: everybody who has a key may use the table.'),
                    h('div.actions', writeButton(policy.Policy ? 'Edit…' : 'Add…', () => policyDialog(arn, policy)), policy.Policy && writeButton('Delete', act(() => ctx.db('DeleteResourcePolicy', { ResourceArn: arn, ExpectedRevisionId: policy.RevisionId }), 'The policy is deleted.'), { class: 'danger' })))),
            panel('Backups', backups.problem ? h('p.muted', backups.problem.message) : backups.BackupSummaries.length ? h('p', `${count(backups.BackupSummaries.length)}, the latest `, timeNode(backups.BackupSummaries.at(-1).BackupCreationDateTime * 1000, { relative: true }), '. ', h('a', { href: href('/backups', { table: name }) }, 'Time line and restore')) : h('p.muted', 'None.'),
                h('div.actions', writeButton('Back up now…', () => createBackup(ctx, name, reload)))),
            panel('Delete', h('p.muted', 'All items, indexes and settings of this table. Backups stay.'), h('div.actions', writeButton('Delete table…', drop, { class: 'danger', ...(t.DeletionProtectionEnabled ? { disabled: true, title: 'Deletion protection is on' } : {}) }))));

            function capacity() {
                let mode = t.BillingModeSummary?.BillingMode || 'PROVISIONED';
                const read = h('input', { type: 'number', min: 1, value: t.ProvisionedThroughput.ReadCapacityUnits || 5 }), write = h('input', { type: 'number', min: 1, value: t.ProvisionedThroughput.WriteCapacityUnits || 5 });
                const units = h('div.fields', { hidden: mode !== 'PROVISIONED' }, field('Read units', read), field('Write units', write));
                dialog({ title: 'Capacity', body: [field('Capacity', select([['PAY_PER_REQUEST', 'On demand'], ['PROVISIONED', 'Provisioned']], mode, (v) => { mode = v; units.hidden = v !== 'PROVISIONED'; })), units], actions: [{ text: 'Cancel' }, { text: 'Change', kind: 'primary', run: async () => {
                    const amount = { ReadCapacityUnits: Number(read.value), WriteCapacityUnits: Number(write.value) };
                    await ctx.db('UpdateTable', { TableName: name, BillingMode: mode, ...(mode === 'PROVISIONED' ? { ProvisionedThroughput: amount,
                        ...(t.GlobalSecondaryIndexes && t.BillingModeSummary?.BillingMode === 'PAY_PER_REQUEST' ? { GlobalSecondaryIndexUpdates: t.GlobalSecondaryIndexes.map((i) => ({ Update: { IndexName: i.IndexName, ProvisionedThroughput: amount } })) } : {}) } : {}) });
                    reload();
                } }] });
            }
        }

        const pretty = (text) => {
            try {
                return JSON.stringify(JSON.parse(text), null, 2);
            } catch {
                return text;
            }
        };
        const streamOff = async () => await confirm({ title: 'Turn the stream off?', text: 'Its records can be read for a day more; what is written from now on is not recorded.', action: 'Turn off', run: () => ctx.db('UpdateTable', { TableName: name, StreamSpecification: { StreamEnabled: false } }) }) && reload();
        function streamOn() {
            let view = 'NEW_AND_OLD_IMAGES';
            dialog({ title: 'Turn the stream on', body: field('Images', select([['NEW_AND_OLD_IMAGES', 'New and old images'], ['NEW_IMAGE', 'New images'], ['OLD_IMAGE', 'Old images'], ['KEYS_ONLY', 'Keys only']], view, (v) => { view = v; })), actions: [{ text: 'Cancel' }, { text: 'Turn on', kind: 'primary', run: async () => {
                await ctx.db('UpdateTable', { TableName: name, StreamSpecification: { StreamEnabled: true, StreamViewType: view } });
                reload();
            } }] });
        }
        function ttlDialog() {
            const input = h('input', { type: 'text', required: true, autocomplete: 'off' });
            dialog({ title: 'Time to live', body: [field('Attribute', input, 'A number: the time in seconds since 1970. Items are deleted some time after it.')], actions: [{ text: 'Cancel' }, { text: 'Turn on', kind: 'primary', run: async () => {
                await ctx.db('UpdateTimeToLive', { TableName: name, TimeToLiveSpecification: { Enabled: true, AttributeName: input.value.trim() } });
                reload();
            } }] });
        }
        function tagDialog(arn) {
            const key = h('input', { type: 'text', required: true, maxlength: 128 }), value = h('input', { type: 'text', maxlength: 256 });
            dialog({ title: 'Add tag', body: h('div.fields', field('Name', key), field('Value', value)), actions: [{ text: 'Cancel' }, { text: 'Add', kind: 'primary', run: async () => {
                await ctx.db('TagResource', { ResourceArn: arn, Tags: [{ Key: key.value, Value: value.value }] });
                reload();
            } }] });
        }
        function policyDialog(arn, policy) {
            const sample = { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Principal: { AWS: arn.replace(/^arn:aws:dynamodb:[^:]*:(\d+):.*/, 'arn:aws:iam::$1:root') }, Action: ['dynamodb:GetItem', 'dynamodb:Query'], Resource: arn }] };
            const text = h('textarea', { rows: 16, value: policy.Policy ? pretty(policy.Policy) : JSON.stringify(sample, null, 2), 'aria-label': 'Policy as JSON', spellcheck: 'false' });
            dialog({ title: 'Policy', wide: true, body: text, actions: [{ text: 'Cancel' }, { text: 'Save', kind: 'primary', run: async () => {
                await ctx.db('PutResourcePolicy', { ResourceArn: arn, Policy: text.value, ExpectedRevisionId: policy.RevisionId || 'NO_POLICY' });
                reload();
            } }] });
        }
        async function dropIndex(index) {
            if (await confirm({ title: 'Delete this index?', text: 'Queries of the index fail from then on. The items of the table stay.', typed: index, run: () => ctx.db('UpdateTable', { TableName: name, GlobalSecondaryIndexUpdates: [{ Delete: { IndexName: index } }] }) }))
                reload();
        }
        async function drop() {
            if (await confirm({ title: 'Delete this table?', text: 'All of its items are deleted for good.', typed: name, action: 'Delete table', run: () => ctx.db('DeleteTable', { TableName: name }) })) {
                toast(`Table ${name} is deleted.`, 'good');
                go('/tables');
            }
        }

        let timer = 0;
        const again = () => { clearTimeout(timer); timer = setTimeout(reload, 1000); }; /* only while a change is under way */
        const reload = () => load(place, content, { signal: ctx.signal });
        await reload();
        ctx.on('back', reload);
        ctx.on('writes', debounce((w) => touched(w, name) && !document.querySelector('dialog[open]') && reload(), 2000));
        return () => clearTimeout(timer);
    },
};
