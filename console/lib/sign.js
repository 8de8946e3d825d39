/*
 * lib/sign.js: AWS's signature, version 4, made in the page.
 *
 * The digest is WebCrypto's where the page may use it (HTTPS, localhost), else our own: a page over
 * plain HTTP from another machine has no crypto.subtle.
 */

const K = new Uint32Array(64), H0 = new Uint32Array(8);
{
    /* The constants are the fractions of square and cube roots of the first primes. */
    const fraction = (x) => ((x - Math.floor(x)) * 4294967296) >>> 0;
    for (let n = 2, at = 0; at < 64; n++) {
        let prime = true;
        for (let d = 2; d * d <= n && prime; d++)
            prime = n % d !== 0;
        if (!prime)
            continue;
        if (at < 8)
            H0[at] = fraction(Math.sqrt(n));
        K[at++] = fraction(Math.cbrt(n));
    }
}

export function sha256Own(bytes) {
    const blocks = ((bytes.length + 8) >> 6) + 1, data = new Uint8Array(blocks * 64), view = new DataView(data.buffer);
    const w = new Uint32Array(64), state = H0.slice();
    data.set(bytes);
    data[bytes.length] = 0x80;
    view.setUint32(data.length - 8, Math.floor(bytes.length / 536870912));
    view.setUint32(data.length - 4, (bytes.length << 3) >>> 0);
    const rotate = (x, n) => (x >>> n) | (x << (32 - n));
    for (let at = 0; at < data.length; at += 64) {
        for (let i = 0; i < 16; i++)
            w[i] = view.getUint32(at + i * 4);
        for (let i = 16; i < 64; i++) {
            const a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)) + w[i - 7] +
                (rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10));
        }
        let [a, b, c, d, e, f, g, h] = state;
        for (let i = 0; i < 64; i++) {
            const t = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
            const u = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
            [h, g, f, e, d, c, b, a] = [g, f, e, (d + t) | 0, c, b, a, (t + u) | 0];
        }
        [a, b, c, d, e, f, g, h].forEach((x, i) => { state[i] += x; });
    }
    const out = new Uint8Array(32), outView = new DataView(out.buffer);
    state.forEach((x, i) => outView.setUint32(i * 4, x));
    return out;
}

async function sha256(bytes) {
    return globalThis.crypto?.subtle ? new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)) : sha256Own(bytes);
}

const encode = (text) => new TextEncoder().encode(text);
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');

function joined(a, b) {
    const all = new Uint8Array(a.length + b.length);
    all.set(a);
    all.set(b, a.length);
    return all;
}

async function hmac(key, text) {
    const block = new Uint8Array(64);
    block.set(key.length > 64 ? await sha256(key) : key);
    const inner = await sha256(joined(block.map((b) => b ^ 0x36), encode(text)));
    return sha256(joined(block.map((b) => b ^ 0x5c), inner));
}

const escaped = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());

const kept = { of: '', key: null }; /* the signing key of this day */

/* The headers that sign a request: {method, url (a URL), headers, body (text), key: {id, secret, token}, region, now} */
export async function sign({ method, url, headers, body, key, region, now }) {
    const time = new Date(now).toISOString().replace(/[-:]|\.\d+/g, ''), date = time.slice(0, 8);
    const scope = `${date}/${region}/dynamodb/aws4_request`, hash = hex(await sha256(encode(body || '')));
    const all = { ...headers, host: url.host, 'x-amz-date': time, 'x-amz-content-sha256': hash };
    if (key.token)
        all['x-amz-security-token'] = key.token;
    const lower = Object.entries(all).map(([name, value]) => [name.toLowerCase(), String(value).trim()])
        .sort((a, b) => (a[0] < b[0] ? -1 : 1));
    const names = lower.map((pair) => pair[0]).join(';');
    const query = [...url.searchParams].map(([name, value]) => `${escaped(name)}=${escaped(value)}`).sort().join('&');
    const request = [method, url.pathname, query, ...lower.map((pair) => pair.join(':')), '', names, hash].join('\n');
    const of = [key.id, key.secret, date, region].join('\n');
    if (kept.of !== of) {
        let made = encode('AWS4' + key.secret);
        for (const part of [date, region, 'dynamodb', 'aws4_request'])
            made = await hmac(made, part);
        Object.assign(kept, { of, key: made });
    }
    const text = ['AWS4-HMAC-SHA256', time, scope, hex(await sha256(encode(request)))].join('\n');
    const signature = hex(await hmac(kept.key, text));
    delete all.host; /* the browser sends it */
    all.authorization = `AWS4-HMAC-SHA256 Credential=${key.id}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
    return all;
}
