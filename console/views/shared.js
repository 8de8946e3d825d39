/* views/shared.js: small things that several views of data need. */

/* Does a `writes` event of the stream say that this table was written? It says `all` when there are many. */
export function touched(writes, table) {
    return !!writes?.all || (writes?.tables || []).includes(table);
}
