/*
 * coord/opener.c: leases of the dead on a directory.
 *
 * A holder that is silent for a lease is replaced: that is how it works between hosts, and it costs
 * a lease after each crash. On a directory more is known. One process at a time has it open, and
 * each opening has a text of its own (hf_db_opener()). Whoever leases something through an opening
 * writes that text beside the lease, as `opener`:
 *
 *     lock           in the entry of each holder (lock_item.c)
 *     once           in the record while it runs (once_item.c)
 *     relay          in the item of the relay (relay_member.c)
 *     claims         in the event (outbox_claim.c), in the record (processor_claim.c)
 *     consumers      in the position of a shard (consumer_lease.c)
 *     subscriptions  in their item, as `p` (events/subscribe/subscribe_item.c)
 *
 *  (1) A lease with another text than that of our own opening is one of the dead: its directory
 *      was closed, or its process has ended, before ours could be opened. It is taken over as one
 *      that has expired is, on the condition that it is as it was read, and the fence grows.
 *  (2) Over the network there is no text, neither in what is written nor to compare with: such
 *      leases end by silence alone, also when they are read on the directory of the server.
 *  (3) Whoever takes a lease writes the text, or removes the one that is there: none is left from
 *      a former holder.
 */
#include "coord/pattern.h"

bool hf__pattern_is_orphan(struct hf_db *db, struct hf_str opener)
{
    struct hf_str ours = hf_db_opener(db);

    return ours.len && opener.len && !hf_str_equal(ours, opener);
}
