/* views/remote.js: which database this console shows, what it may do there, and how to open another. */
import { fill, h } from '../lib/dom.js';
import { badge, code, facts, panel, rows } from '../lib/panels.js';

/* [what, with a database of this server, with a remote one] */
const VIEWS = [
    ['Tables, items, queries, PartiQL, streams', 'yes', 'yes, each request is charged there'],
    ['Outbox, events, locks and all other patterns', 'yes', 'yes; lists read whole tables'],
    ['Backups', 'yes', 'yes, if the endpoint has them'],
    ['What changes shows by itself', 'yes', 'what is written through this console; others: Refresh'],
    ['Live requests, hot and large, charts', 'of all clients', 'of this console only'],
    ['Clock, faults, snapshots', 'with --admin', 'no'],
];

export default {
    title: 'Remote',
    async open(root, params, ctx) {
        const info = ctx.info, remote = info.database?.kind === 'remote';
        ctx.head({ title: remote ? 'A remote database' : 'Remote' });
        fill(root,
            panel('This console', facts([['Shows', remote ? ['a remote database ', badge('remote', 'info')] : 'the database of this server'], ['Address', info.database?.url || location.origin], ['Region', info.region],
                ['May write', ctx.readOnly ? ['no ', badge('read-only', 'warn')] : 'yes'], ['Requests', info.access === 'keys' ? 'signed in this page, with a key that stays in this tab' : 'without keys, from this machine only'], ['Version', info.version]]),
            ctx.readOnly && h('p.hint', remote ? ['Everything that writes is disabled here, and the server refuses it as well. To write, start it with ', h('code', '--write'), '.'] : 'Everything that writes is disabled here, and the server refuses it as well: it was started with --read-only.'),
            remote && h('p.hint.warn', 'Reading costs there: a scan reads, and charges, the whole table. The page asks for one page at a time, and for more only when you scroll or press a button.')),
            panel('What it can show', rows([{ label: 'View', wide: true, cell: (v) => v[0] }, { label: 'Database of this server', cell: (v) => v[1] }, { label: 'Remote', cell: (v) => v[2], wide: true }], VIEWS, { caption: 'Views by kind of database' })),
            panel('Another database', h('p', 'The same page opens over any endpoint of DynamoDB\'s protocol. It is read-only unless you say otherwise. Credentials are found as AWS\'s tools find them, and never reach the page.'),
                h('h3', 'Amazon DynamoDB'), code('holdfast console --db dynamodb://eu-central-1'), h('h3', 'Alternator, DynamoDB Local, another holdfast'), code('holdfast console --db http://scylla.example.com:8000'),
                h('h3', 'A directory that no process has open'), code('holdfast console --db embedded:shop.db'), h('h3', 'To write, too'), code('holdfast console --db dynamodb://eu-central-1 --write')));
        return null;
    },
};
