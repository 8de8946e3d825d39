"""Many callers at once: threads with one client, pools, contention."""
import concurrent.futures
import urllib.request

from support import ENDPOINT, Case, N, S, client, endpoint

THREADS = 50


def at_once(call, count, threads=THREADS):
    """call(0), call(1), ... by many threads; the results, in order."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, range(count)))


class Crowds(Case):
    @classmethod
    def setUpClass(cls):
        cls.pooled = client(pool=THREADS)

    @classmethod
    def tearDownClass(cls):
        cls.pooled.close()

    def test_fifty_writers(self):
        name = self.table()
        at_once(lambda i: self.pooled.put_item(TableName=name, Item={"pk": S(str(i)), "v": N(i)}),
                1000)
        found = self.pooled.get_paginator("scan").paginate(TableName=name).build_full_result()
        self.assertEqual({int(item["pk"]["S"]): int(item["v"]["N"]) for item in found["Items"]},
                         {i: i for i in range(1000)})

    def test_one_counter(self):
        name = self.table()
        at_once(lambda i: self.pooled.update_item(
            TableName=name, Key={"pk": S("n")}, UpdateExpression="ADD v :one",
            ExpressionAttributeValues={":one": N(1)}), 500)
        self.assertEqual(self.get(name, pk=S("n"))["v"], N(500))

    def test_counter_returns_every_number_once(self):
        name = self.table()
        told = at_once(lambda i: int(self.pooled.update_item(
            TableName=name, Key={"pk": S("n")}, UpdateExpression="ADD v :one",
            ExpressionAttributeValues={":one": N(1)},
            ReturnValues="UPDATED_NEW")["Attributes"]["v"]["N"]), 300)
        self.assertEqual(sorted(told), list(range(1, 301)))

    def test_one_wins_the_condition(self):
        name = self.table()

        def claim(i):
            try:
                self.pooled.put_item(TableName=name, Item={"pk": S("lock"), "owner": N(i)},
                                     ConditionExpression="attribute_not_exists(pk)")
                return i
            except self.pooled.exceptions.ConditionalCheckFailedException:
                return None

        winners = [i for i in at_once(claim, THREADS) if i is not None]
        self.assertEqual(len(winners), 1)
        self.assertEqual(self.get(name, pk=S("lock"))["owner"], N(winners[0]))

    def test_optimistic_updates(self):
        name = self.table(items=[{"pk": S("n"), "v": N(0)}])

        def increment(_):
            while True:
                seen = self.pooled.get_item(TableName=name, Key={"pk": S("n")},
                                            ConsistentRead=True)["Item"]["v"]
                try:
                    self.pooled.update_item(
                        TableName=name, Key={"pk": S("n")}, UpdateExpression="SET v = :new",
                        ConditionExpression="v = :seen", ExpressionAttributeValues={
                            ":new": N(int(seen["N"]) + 1), ":seen": seen})
                    return
                except self.pooled.exceptions.ConditionalCheckFailedException:
                    pass

        at_once(increment, 40, threads=10)
        self.assertEqual(self.get(name, pk=S("n"))["v"], N(40))

    def test_transfers_keep_the_sum(self):
        name = self.table(items=[{"pk": S(str(i)), "v": N(100)} for i in range(10)])

        def transfer(i):
            source, target = str(i % 10), str((i * 3 + 1) % 10)
            if source == target:
                return
            try:
                self.pooled.transact_write_items(TransactItems=[
                    {"Update": {"TableName": name, "Key": {"pk": S(source)},
                                "UpdateExpression": "SET v = v - :x",
                                "ConditionExpression": "v >= :x",
                                "ExpressionAttributeValues": {":x": N(30)}}},
                    {"Update": {"TableName": name, "Key": {"pk": S(target)},
                                "UpdateExpression": "SET v = v + :x",
                                "ExpressionAttributeValues": {":x": N(30)}}}])
            except self.pooled.exceptions.TransactionCanceledException:
                pass

        def sum_now(_):
            told = self.pooled.transact_get_items(TransactItems=[
                {"Get": {"TableName": name, "Key": {"pk": S(str(i))}}} for i in range(10)])
            return sum(int(entry["Item"]["v"]["N"]) for entry in told["Responses"])

        sums = at_once(lambda i: sum_now(i) if i % 5 == 0 else transfer(i), 300)
        self.assertEqual({found for found in sums if found is not None}, {1000})
        self.assertEqual(sum_now(0), 1000)
        balances = [int(item["v"]["N"]) for item in self.db.scan(TableName=name)["Items"]]
        self.assertTrue(all(balance >= 0 for balance in balances), balances)

    def test_batches_at_once(self):
        name = self.table()
        at_once(lambda i: self.pooled.batch_write_item(RequestItems={
            name: [{"PutRequest": {"Item": {"pk": S(f"{i}-{j}")}}} for j in range(25)]}), 40)
        self.assertEqual(self.db.scan(TableName=name, Select="COUNT")["Count"], 1000)

    def test_tables_at_once(self):
        names = at_once(lambda i: self.table(), 20)
        self.assertEqual(len(set(names)), 20)
        told = self.db.get_paginator("list_tables").paginate().build_full_result()["TableNames"]
        self.assertLessEqual(set(names), set(told))

    def test_tags_at_once(self):
        arn = self.db.describe_table(TableName=self.table())["Table"]["TableArn"]
        at_once(lambda i: self.pooled.tag_resource(
            ResourceArn=arn, Tags=[{"Key": f"k{i}", "Value": "v"}]), 40)
        self.assertEqual(len(self.db.list_tags_of_resource(ResourceArn=arn)["Tags"]), 40)

    def test_parallel_scan(self):
        name = self.table()
        at_once(lambda i: self.pooled.batch_write_item(RequestItems={
            name: [{"PutRequest": {"Item": {"pk": S(f"{i * 25 + j}")}}} for j in range(25)]}), 20)

        def segment(i):
            pages = self.pooled.get_paginator("scan").paginate(
                TableName=name, Segment=i, TotalSegments=8, PaginationConfig={"PageSize": 10})
            return [int(item["pk"]["S"]) for page in pages for item in page["Items"]]

        found = [number for part in at_once(segment, 8) for number in part]
        self.assertEqual(sorted(found), list(range(500)))

    def test_large_items_at_once(self):
        name = self.table()
        text = "x" * 200000
        at_once(lambda i: self.pooled.put_item(TableName=name,
                                               Item={"pk": S(str(i)), "v": S(text)}), 30)
        lengths = at_once(lambda i: len(self.pooled.get_item(
            TableName=name, Key={"pk": S(str(i))})["Item"]["v"]["S"]), 30)
        self.assertEqual(set(lengths), {200000})

    def test_connections_are_used_again(self):
        if ENDPOINT:
            self.skipTest("needs holdfast's metrics")

        def connections():
            with urllib.request.urlopen(endpoint() + "/metrics") as answer:
                line = [x for x in answer.read().decode().splitlines()
                        if x.startswith("holdfast_connections_total ")][0]
            return int(line.split()[1])

        name = self.table()
        one = client(pool=4)
        before = connections()
        at_once(lambda i: one.get_item(TableName=name, Key={"pk": S(str(i))}), 200, threads=4)
        used = connections() - before
        one.close()
        self.assertLessEqual(used, 4 + 1)  # and one that asked for the metrics
