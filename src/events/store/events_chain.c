/*
 * events/store/events_chain.c: the hashes of events.
 *
 * Two steps, each a SHA-256 over fields with their length in front (8 bytes, little end first), so
 * that no two lists of fields look the same; a text that is absent counts as empty, a number is 8
 * bytes without a length.
 *
 *     content   "holdfast event 1", type, content type, schema, SHA-256 of the payload, meta,
 *               causation, correlation (empty when it is the event's own id), compensates
 *     hash      the hash before, domain, id of the stream, version, position, id of the event,
 *               time, content
 *
 * The content is what makes two events with one id the same: the time is not in it, as an append
 * without a time of its own gets another one when it is repeated. Meta is hashed in the canonical
 * form of items (src/model/value.h), in which equal items have equal bytes.
 *
 * SHA-256 is called by the functions that OpenSSL 3 would rather see replaced by EVP, as in
 * src/http/sign.c, for the same reason: there each hash takes memory. SHA256() is such a one.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "events/store/events.h"

#include <openssl/sha.h>

_Static_assert(EVENTS_HASH == SHA256_DIGEST_LENGTH, "the size of a hash");

static void add_number(SHA256_CTX *hash, uint64_t number)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    SHA256_Update(hash, bytes, sizeof(bytes));
}

static void add_bytes(SHA256_CTX *hash, const void *bytes, size_t len)
{
    add_number(hash, len);
    if (len)
        SHA256_Update(hash, bytes, len);
}

static void add_str(SHA256_CTX *hash, struct hf_str text)
{
    add_bytes(hash, text.ptr, text.len);
}

static int hex_nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

/* The digest of a payload that is in the blob store is its name. */
static void payload_digest(const struct hf_stored_event *event, uint8_t digest[EVENTS_HASH])
{
    SHA256_CTX hash;

    if (event->blob.len == 2 * EVENTS_HASH) {
        for (size_t i = 0; i < EVENTS_HASH; i++)
            digest[i] = (uint8_t)(hex_nibble(event->blob.ptr[2 * i]) << 4 |
                                  hex_nibble(event->blob.ptr[2 * i + 1]));
        return;
    }
    SHA256_Init(&hash);
    SHA256_Update(&hash, event->payload.len ? event->payload.ptr : (const uint8_t *)"",
                  event->payload.len);
    SHA256_Final(digest, &hash);
}

void hf__events_content(const struct hf_stored_event *event, uint8_t digest[EVENTS_HASH])
{
    uint8_t payload[EVENTS_HASH];
    SHA256_CTX hash;

    assert(event->type.len);
    payload_digest(event, payload);
    SHA256_Init(&hash);
    add_str(&hash, HF_STR("holdfast event 1"));
    add_str(&hash, event->type);
    add_str(&hash, event->content_type);
    add_number(&hash, event->schema);
    add_bytes(&hash, payload, sizeof(payload));
    add_bytes(&hash, event->meta.ptr, hf_item_count(event->meta) ? event->meta.len : 0);
    add_str(&hash, event->causation);
    add_str(&hash, hf_str_equal(event->correlation, event->id) ? HF_STR("") : event->correlation);
    add_str(&hash, event->compensates);
    SHA256_Final(digest, &hash);
}

void hf__events_chain(const struct hf_stored_event *event, const uint8_t content[EVENTS_HASH],
                      const uint8_t before[EVENTS_HASH], uint8_t out[EVENTS_HASH])
{
    SHA256_CTX hash;

    assert(event->version && event->position.len == HF_POSITION_LEN && event->id.len);
    SHA256_Init(&hash);
    add_bytes(&hash, before, EVENTS_HASH);
    add_str(&hash, event->stream.domain);
    add_str(&hash, event->stream.id);
    add_number(&hash, event->version);
    add_str(&hash, event->position);
    add_str(&hash, event->id);
    add_number(&hash, (uint64_t)event->time_us);
    add_bytes(&hash, content, EVENTS_HASH);
    SHA256_Final(out, &hash);
}
