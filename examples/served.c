/*
 * examples/served.c: a program that has a database open, and lets others look at it: SDKs, the
 * holdfast command, a browser. It goes on with its own work meanwhile.
 *
 *     cc served.c $(pkg-config --cflags --libs holdfast-server) -o served
 *     ./served                    serves for a moment, while it works
 *     ./served 60                 for a minute: open the URL that it prints, or in another shell
 *                                 holdfast query orders ann --db URL
 */
#include <holdfast/client.h>
#include <holdfast/engine.h>
#include <holdfast/server.h>
#include <holdfast/table.h>

#include <stdio.h>
#include <stdlib.h>

enum { ORDERS = 10 };

static int complain(struct hf_scope *s)
{
    fprintf(stderr, "%s\n", hf_scope_error_text(s));
    return 1;
}

/* The work: an order now and then. */
static enum hf_status place_orders(struct hf_scope *s, struct hf_db *db, unsigned seconds)
{
    for (unsigned n = 1; n <= ORDERS + 10 * seconds; n++) {
        const struct hf_put_item put = {.table = HF_STR("orders"),
                                        .item = HF_ITEM(s, HF_S("customer", HF_STR("ann")),
                                                        HF_N("number", n))};
        enum hf_status status = hf_put_item(s, db, &put, NULL);

        if (status == HF_OK && n > ORDERS)
            status = hf_scope_sleep_ms(s, 100);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* What a client sees: any SDK, or the library itself. */
static enum hf_status count_orders(struct hf_scope *s, struct hf_str url, int64_t *count)
{
    const struct hf_query query = {.table = HF_STR("orders"),
                                   .key_condition = HF_STR("customer = :ann"),
                                   .values = HF_ITEM(s, HF_S(":ann", HF_STR("ann"))),
                                   .select = HF_SELECT_COUNT};
    struct hf_query_result found;
    struct hf_db *client;
    enum hf_status status =
        hf_connect(s, url, HF_OPTIONS(hf_client_options, .region = HF_STR("us-east-1")), &client);

    if (status == HF_OK)
        status = hf_query(s, client, &query, &found);
    if (status == HF_OK)
        *count = found.count;
    hf_db_close(client);
    return status;
}

int main(int argc, char **argv)
{
    const struct hf_create_table orders = {
        .table = HF_STR("orders"),
        .attributes = (struct hf_attribute_definition[]){{HF_STR("customer"), HF_SCALAR_S},
                                                         {HF_STR("number"), HF_SCALAR_N}},
        .attributes_len = 2,
        .key_schema = (struct hf_key_element[]){{HF_STR("customer"), HF_KEY_HASH},
                                                {HF_STR("number"), HF_KEY_RANGE}},
        .key_schema_len = 2};
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_server *server;
    struct hf_db *db;
    int64_t count = 0;

    if (hf_open(s, HF_STR("embedded:shop.db"), NULL, &db) != HF_OK)
        return complain(s);
    if (hf_table_ensure(s, db, &orders, NULL) != HF_OK)
        return complain(s);

    /* From here on others may ask, too. Without keys only this machine can. */
    if (hf_server_open(s, db, HF_OPTIONS(hf_server_options, .name = HF_STR("the shop")), &server) !=
        HF_OK)
        return complain(s);
    printf("serving on %s, the console is at %s/console/\n", hf_server_url(server).ptr,
           hf_server_url(server).ptr);
    fflush(stdout);

    if (place_orders(s, db, seconds) != HF_OK ||
        count_orders(s, hf_server_url(server), &count) != HF_OK)
        return complain(s);
    printf("a client counts %lld orders\n", (long long)count);

    hf_server_close(server); /* the database stays open, */
    if (place_orders(s, db, 0) != HF_OK)
        return complain(s);
    hf_db_close(db); /* until it is closed, too */
    hf_scope_free(s);
    return count == ORDERS + 10 * (int64_t)seconds ? 0 : 1;
}
