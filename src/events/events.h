/*
 * events/events.h: the table of an event store, and what its files share.
 *
 * One table, keys pk and sk, both S. STREAM is the key of domain and id (hf__pattern_key()),
 * VERSION 16 digits, DAY a UTC day as 20261115, SHARD two digits, POS a position, COMMIT the
 * position of the first event of an append.
 *
 *     pk            sk        what
 *     s.STREAM      VERSION   an event of a stream, whole
 *     s.STREAM      h         its head: version, position and hash of its last event, and what was
 *                             said about the stream (truncated, limits, archived, deleted)
 *     a.DAY.SHARD   COMMIT    the events of one append in the order of all: a list, whole again
 *     z.DAY.SHARD   COMMIT    the same of archived streams
 *     m.DAY.SHARD   m         up to which position that part of the order is closed
 *     d             DAY       there is something of that day; `closed` when all its parts are for
 * good d             closed    days before `upto` cannot come any more i.ID          i         an
 * id that a caller chose: which stream, version and commit r.ID          POS       an event that ID
 * caused, that is correlated with ID, or both t.COMMIT      NUMBER    events of an append that is
 * larger than a transaction, in order x             COMMIT    such an append was begun, when; goes
 * when it is visible n.STREAM      n         a snapshot q.NAME        q         a subscription: its
 * checkpoint, who has it c             config    what the table is: kind, shards, whether there is
 * a chain
 *
 * Positions. 10 characters of the time in milliseconds, 4 of a count, 2 of the shard, 10 that
 * nobody else has, in Crockford's base 32, so that texts sort as positions do. Who appends takes
 * one that is greater than that of the head of each stream it appends to, than any it has made and
 * than any it has read: a clock that runs behind does not matter. The events of one append have
 * positions that differ in their last two characters alone, from 00 on (and what is larger takes
 * several such runs), so an event is found by its position: its commit is the last one at or before
 * it.
 *
 * Nothing is skipped. An append is one transaction: the head moves on, on the condition that it is
 * where it was seen; the events are put under their versions, and once more as one item into the
 * order of all; and a check that the marker of that day and shard is there and not closed at or
 * beyond the new position. Who reads the order of all looks what there is in the shards, takes the
 * greatest position that it wants to hand out, closes all shards up to it, and reads again what
 * lies before it: whatever is committed later has a greater position, since its check would have
 * failed. Who is refused learns from the marker up to where it is closed, and tries again behind
 * that. Markers that are closed far enough are not written again, so readers of history write
 * nothing, and idle ones neither.
 *
 * Before a reader moves on to a later day it raises `upto` to that day, and closes each day before
 * it for good. A marker is made by the first append that misses it: `d`/DAY is put first, in a
 * transaction that checks `upto`.
 *
 * Large appends. Events are put under t.COMMIT, after x/COMMIT says so; then one transaction moves
 * the heads, removes x/COMMIT on the condition that it is there, puts stubs (`large` = COMMIT) into
 * the order of all and into each stream, under the first and under the last version of the range
 * that they stand for, so that reading from either side meets one. The sweep removes x/COMMIT of
 * old ones first, and then what lies aside: after that the last step cannot succeed any more.
 *
 * The chain. hash = SHA-256 of the hash before (32 zero bytes for the first) and of the content,
 * each field with its length in front (events_chain.c lists them). Payloads go in by their SHA-256,
 * so that those in the blob store need not be fetched.
 */
#ifndef HF_EVENTS_EVENTS_H
#define HF_EVENTS_EVENTS_H

#include "patterns/private.h"

#include <holdfast/events.h>

#endif
