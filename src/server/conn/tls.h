/*
 * server/conn/tls.h: TLS between the sockets and the connections, by OpenSSL on memory of ours: it never
 * touches a socket.
 */
#ifndef HF_SERVER_TLS_H
#define HF_SERVER_TLS_H

#include "base/base.h"
#include "base/buf.h"

struct conn;
struct tls;
struct tls_context;

/* Read the certificates. HF_INVALID names the file and what is wrong with it. */
enum hf_status hf__tls_open(struct hf_scope *s, const struct hf_env *env, struct hf_str certificate,
                            struct hf_str private_key, struct tls_context **context);
/* Read them again; on failure the old ones stay. New connections use what was read. Any thread. */
enum hf_status hf__tls_reload(struct hf_scope *s, struct tls_context *context);
void hf__tls_close(struct tls_context *context);

/* Give the connection its own TLS; false when there is no memory. */
bool hf__tls_new(struct conn *conn);
void hf__tls_free(struct tls *tls);

/* Is the handshake over? */
bool hf__tls_established(const struct tls *tls);

/* Bytes from the socket: decrypts, and hands what comes out to hf__conn_consume(). False when the
 * other side does not speak TLS, or not with us. */
bool hf__tls_feed(struct conn *conn, uint8_t *bytes, size_t len);

/* Encrypt what is in `out` from `*begin` on, in place of it; with what TLS itself has to say.
 * `last`: nothing follows, which the other side is told, so that an end that somebody else made
 * differs. */
bool hf__tls_seal(struct tls *tls, struct hf__buf *out, size_t *begin, bool last);

#endif
