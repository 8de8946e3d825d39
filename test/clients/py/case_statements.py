"""PartiQL: ExecuteStatement, BatchExecuteStatement, ExecuteTransaction."""
import re

from support import INVALID, Case, N, S, Shared, index, put_many


class Selecting(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create("S", "N", types={"kind": "S"},
                              GlobalSecondaryIndexes=[index("by-kind", "kind", "sk")])
        put_many(cls.name, [{"pk": S("p"), "sk": N(i), "kind": S("ab"[i % 2]), "v": N(i * 10),
                             "deep": {"M": {"list": {"L": [N(i), S("x")]}}}} for i in range(20)])

    def run_one(self, statement, *parameters, **more):
        if parameters:
            more["Parameters"] = list(parameters)
        return self.db.execute_statement(Statement=statement.replace("TABLE", f'"{self.name}"'),
                                         **more)

    def numbers(self, statement, *parameters, **more):
        return [int(item["sk"]["N"]) for item in
                self.run_one(statement, *parameters, **more)["Items"]]

    def test_one_item(self):
        found = self.run_one("SELECT * FROM TABLE WHERE pk = ? AND sk = ?", S("p"), N(3))
        self.assertEqual(found["Items"], [{"pk": S("p"), "sk": N(3), "kind": S("b"), "v": N(30),
                                           "deep": {"M": {"list": {"L": [N(3), S("x")]}}}}])

    def test_literals(self):
        self.assertEqual(self.numbers("SELECT * FROM TABLE WHERE pk = 'p' AND sk = 7"), [7])

    def test_range(self):
        self.assertEqual(self.numbers("SELECT * FROM TABLE WHERE pk = 'p' AND sk > 16"),
                         [17, 18, 19])

    def test_between(self):
        self.assertEqual(self.numbers("SELECT * FROM TABLE WHERE pk='p' AND sk BETWEEN 3 AND 5"),
                         [3, 4, 5])

    def test_order_by(self):
        self.assertEqual(self.numbers("SELECT sk FROM TABLE WHERE pk='p' AND sk < 3 "
                                      "ORDER BY sk DESC"), [2, 1, 0])

    def test_projection(self):
        found = self.run_one("SELECT v, sk FROM TABLE WHERE pk = 'p' AND sk = 2")
        self.assertEqual(found["Items"], [{"v": N(20), "sk": N(2)}])

    def test_in(self):
        self.assertEqual(sorted(self.numbers("SELECT * FROM TABLE WHERE pk='p' AND sk IN (1, 5)")),
                         [1, 5])

    def test_filter(self):
        self.assertEqual(self.numbers("SELECT * FROM TABLE WHERE pk = 'p' AND v >= 180"),
                         [18, 19])

    def test_functions(self):
        self.assertEqual(len(self.numbers("SELECT * FROM TABLE WHERE pk = 'p' AND "
                                          "begins_with(kind, 'a')")), 10)

    def test_index(self):
        found = self.db.execute_statement(
            Statement=f'SELECT * FROM "{self.name}"."by-kind" WHERE kind = ?',
            Parameters=[S("a")])
        self.assertEqual([int(item["sk"]["N"]) for item in found["Items"]], list(range(0, 20, 2)))

    def test_scan(self):
        self.assertEqual(len(self.numbers("SELECT * FROM TABLE")), 20)

    def test_limit_and_token(self):
        first = self.run_one("SELECT * FROM TABLE WHERE pk = 'p'", Limit=15)
        self.assertEqual(len(first["Items"]), 15)
        rest = self.run_one("SELECT * FROM TABLE WHERE pk = 'p'", Limit=15,
                            NextToken=first["NextToken"])
        self.assertEqual([int(item["sk"]["N"]) for item in rest["Items"]], [15, 16, 17, 18, 19])
        self.assertNotIn("NextToken", rest)

    def test_capacity(self):
        found = self.run_one("SELECT * FROM TABLE WHERE pk = 'p' AND sk = 1",
                             ReturnConsumedCapacity="TOTAL", ConsistentRead=True)
        self.assertEqual(found["ConsumedCapacity"],
                         {"TableName": self.name, "CapacityUnits": 1.0})

    def test_syntax(self):
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.run_one("SELEKT * FROM TABLE")
        self.assertEqual(caught.exception.response["Error"]["Code"], INVALID)

    def test_missing_table(self):
        self.fails("ResourceNotFoundException", "Requested resource not found",
                   self.db.execute_statement, Statement="SELECT * FROM nowhere WHERE pk = 'a'")

    def test_too_few_parameters(self):
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.run_one("SELECT * FROM TABLE WHERE pk = ? AND sk = ?", S("p"))
        self.assertEqual(caught.exception.response["Error"]["Code"], INVALID)

    def test_comments_and_case(self):
        self.assertEqual(self.numbers("select * -- all of it\nFrom TABLE /* here */ where pk='p' "
                                      "and sk = 1"), [1])

    def test_nested_path(self):
        found = self.run_one("SELECT deep.\"list\"[0] FROM TABLE WHERE pk = 'p' AND sk = 4")
        self.assertEqual(len(found["Items"]), 1)
        self.assertIn(N(4), [value for value in found["Items"][0].values()])

    def test_nested_filter(self):
        self.assertEqual(self.numbers("SELECT * FROM TABLE WHERE pk = 'p' AND "
                                      "deep.\"list\"[0] = 6"), [6])

    def test_is_missing(self):
        self.assertEqual(self.numbers("SELECT * FROM TABLE WHERE pk = 'p' AND nope IS NOT MISSING"),
                         [])
        self.assertEqual(len(self.numbers("SELECT * FROM TABLE WHERE pk = 'p' AND nope IS "
                                          "MISSING")), 20)

    def test_or_and_not(self):
        self.assertEqual(self.numbers("SELECT * FROM TABLE WHERE pk = 'p' AND (v = 10 OR NOT "
                                      "v < 190)"), [1, 19])

    def test_unknown_index(self):
        self.invalid("The table does not have the specified index", self.db.execute_statement,
                     Statement=f'SELECT * FROM "{self.name}"."none" WHERE kind = \'a\'')

    def test_all_pages_by_token(self):
        seen, more = [], {}
        while True:
            told = self.run_one("SELECT sk FROM TABLE WHERE pk = 'p'", Limit=6, **more)
            seen += [int(item["sk"]["N"]) for item in told["Items"]]
            if "NextToken" not in told:
                break
            more = {"NextToken": told["NextToken"]}
        self.assertEqual(seen, list(range(20)))

    def test_resource_uses_python_types(self):
        told = self.resource.meta.client.execute_statement(
            Statement=f'SELECT v, kind FROM "{self.name}" WHERE pk = ? AND sk = ?',
            Parameters=["p", 3])
        self.assertEqual(told["Items"], [{"v": 30, "kind": "b"}])


class Writing(Case):
    def setUp(self):
        self.name = self.table(items=[{"pk": S("a"), "v": N(1), "s": {"SS": ["x"]}}])

    def run_one(self, statement, *parameters, **more):
        if parameters:
            more["Parameters"] = list(parameters)
        return self.db.execute_statement(Statement=statement.replace("TABLE", f'"{self.name}"'),
                                         **more)

    def test_insert(self):
        told = self.run_one("INSERT INTO TABLE VALUE {'pk': ?, 'v': 2, 'l': [1, 'x', true, null]}",
                            S("b"))
        self.assertEqual(told["Items"], [])
        self.assertEqual(self.get(self.name, pk=S("b")), {
            "pk": S("b"), "v": N(2),
            "l": {"L": [N(1), S("x"), {"BOOL": True}, {"NULL": True}]}})

    def test_insert_twice(self):
        with self.assertRaises(self.db.exceptions.DuplicateItemException):
            self.run_one("INSERT INTO TABLE VALUE {'pk': 'a'}")
        self.assertEqual(self.get(self.name, pk=S("a"))["v"], N(1))

    def test_update(self):
        self.run_one("UPDATE TABLE SET v = v + 5 SET w = ? WHERE pk = 'a'", S("new"))
        self.assertEqual(self.get(self.name, pk=S("a")),
                         {"pk": S("a"), "v": N(6), "w": S("new"), "s": {"SS": ["x"]}})

    def test_update_remove(self):
        self.run_one("UPDATE TABLE REMOVE v WHERE pk = 'a'")
        self.assertNotIn("v", self.get(self.name, pk=S("a")))

    def test_update_returning(self):
        told = self.run_one("UPDATE TABLE SET v = 9 WHERE pk = 'a' RETURNING ALL NEW *")
        self.assertEqual(told["Items"], [{"pk": S("a"), "v": N(9), "s": {"SS": ["x"]}}])

    def test_update_of_a_missing_item(self):
        with self.assertRaises(self.db.exceptions.ConditionalCheckFailedException):
            self.run_one("UPDATE TABLE SET v = 1 WHERE pk = 'none'")

    def test_update_with_a_condition(self):
        with self.assertRaises(self.db.exceptions.ConditionalCheckFailedException):
            self.run_one("UPDATE TABLE SET v = 5 WHERE pk = 'a' AND v = 100")
        self.assertEqual(self.get(self.name, pk=S("a"))["v"], N(1))

    def test_delete(self):
        told = self.run_one("DELETE FROM TABLE WHERE pk = 'a'")
        self.assertEqual(told["Items"], [])
        self.assertIsNone(self.get(self.name, pk=S("a")))

    def test_delete_returning(self):
        told = self.run_one("DELETE FROM TABLE WHERE pk = 'a' RETURNING ALL OLD *")
        self.assertEqual(told["Items"], [{"pk": S("a"), "v": N(1), "s": {"SS": ["x"]}}])

    def test_delete_of_a_missing_item(self):
        self.assertEqual(self.run_one("DELETE FROM TABLE WHERE pk = 'none'")["Items"], [])

    def test_update_without_the_key(self):
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.run_one("UPDATE TABLE SET v = 1 WHERE v = 1")
        self.assertEqual(caught.exception.response["Error"]["Code"], INVALID)

    def test_batch_writes(self):
        told = self.db.batch_execute_statement(Statements=[
            {"Statement": f"INSERT INTO \"{self.name}\" VALUE {{'pk': 'b'}}"},
            {"Statement": f"INSERT INTO \"{self.name}\" VALUE {{'pk': 'a'}}"},
            {"Statement": f"UPDATE \"{self.name}\" SET v = 2 WHERE pk = ?",
             "Parameters": [S("none")]}])
        self.assertNotIn("Error", told["Responses"][0])
        self.assertEqual([response.get("Error", {}).get("Code") for response in told["Responses"]],
                         [None, "DuplicateItem", "ConditionalCheckFailed"])

    def test_batch_reads(self):
        told = self.db.batch_execute_statement(Statements=[
            {"Statement": f"SELECT * FROM \"{self.name}\" WHERE pk = ?", "Parameters": [S(key)]}
            for key in ("a", "none")])
        self.assertEqual(told["Responses"][0]["Item"]["v"], N(1))
        self.assertNotIn("Item", told["Responses"][1])

    def test_batch_missing_table(self):
        told = self.db.batch_execute_statement(Statements=[
            {"Statement": "SELECT * FROM nowhere WHERE pk = 'a'"}])
        self.assertEqual(told["Responses"][0]["Error"]["Code"], "ResourceNotFound")

    def test_transaction_writes(self):
        told = self.db.execute_transaction(TransactStatements=[
            {"Statement": f"INSERT INTO \"{self.name}\" VALUE {{'pk': 'b'}}"},
            {"Statement": f"UPDATE \"{self.name}\" SET v = v + 1 WHERE pk = 'a'"}])
        self.assertEqual(told["Responses"], [])
        self.assertEqual(self.get(self.name, pk=S("a"))["v"], N(2))
        self.assertEqual(self.get(self.name, pk=S("b")), {"pk": S("b")})

    def test_transaction_reads(self):
        told = self.db.execute_transaction(TransactStatements=[
            {"Statement": f"SELECT v FROM \"{self.name}\" WHERE pk = 'a'"},
            {"Statement": f"SELECT v FROM \"{self.name}\" WHERE pk = 'none'"}])
        self.assertEqual(told["Responses"], [{"Item": {"v": N(1)}}, {}])

    def test_transaction_canceled(self):
        with self.assertRaises(self.db.exceptions.TransactionCanceledException) as caught:
            self.db.execute_transaction(TransactStatements=[
                {"Statement": f"INSERT INTO \"{self.name}\" VALUE {{'pk': 'b'}}"},
                {"Statement": f"INSERT INTO \"{self.name}\" VALUE {{'pk': 'a'}}"}])
        codes = [reason["Code"] for reason in caught.exception.response["CancellationReasons"]]
        self.assertEqual(codes, ["None", "DuplicateItem"])
        self.assertIsNone(self.get(self.name, pk=S("b")))

    def test_transaction_token(self):
        statement = [{"Statement": f"UPDATE \"{self.name}\" SET v = v + 1 WHERE pk = 'a'"}]
        for _ in range(2):
            self.db.execute_transaction(TransactStatements=statement, ClientRequestToken="token")
        self.assertEqual(self.get(self.name, pk=S("a"))["v"], N(2))

    def test_transaction_returning(self):
        self.invalid(re.compile("RETURNING clause is not supported in ExecuteTransaction"),
                     self.db.execute_transaction, TransactStatements=[
                         {"Statement": f"UPDATE \"{self.name}\" SET v = 2 WHERE pk = 'a' "
                                       "RETURNING ALL NEW *"}])

    def test_stream_of_statements(self):
        self.db.update_table(TableName=self.name, StreamSpecification={
            "StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
        arn = self.db.describe_table(TableName=self.name)["Table"]["LatestStreamArn"]
        self.run_one("INSERT INTO TABLE VALUE {'pk': 's'}")
        self.run_one("UPDATE TABLE SET v = 1 WHERE pk = 's'")
        self.run_one("DELETE FROM TABLE WHERE pk = 's'")
        found = []
        for shard in self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            at = self.streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"],
                                                 ShardIteratorType="TRIM_HORIZON")
            found += self.streams.get_records(ShardIterator=at["ShardIterator"])["Records"]
        self.assertEqual([record["eventName"] for record in found], ["INSERT", "MODIFY", "REMOVE"])

    def test_set_functions(self):
        self.run_one("UPDATE TABLE SET s = set_add(s, <<'y', 'z'>>) WHERE pk = 'a'")
        self.run_one("UPDATE TABLE SET s = set_delete(s, <<'x'>>) WHERE pk = 'a'")
        self.assertEqual(self.get(self.name, pk=S("a"))["s"], {"SS": ["y", "z"]})

    def test_insert_sets_and_maps(self):
        self.run_one("INSERT INTO TABLE VALUE {'pk': 'd', 's': <<1, 2>>, 'm': {'x': {'y': 'z'}}}")
        self.assertEqual(self.get(self.name, pk=S("d")), {
            "pk": S("d"), "s": {"NS": ["1", "2"]},
            "m": {"M": {"x": {"M": {"y": S("z")}}}}})

    def test_list_append(self):
        self.run_one("UPDATE TABLE SET l = [1] WHERE pk = 'a'")
        self.run_one("UPDATE TABLE SET l = list_append(l, [2]) WHERE pk = 'a'")
        self.assertEqual(self.get(self.name, pk=S("a"))["l"], {"L": [N(1), N(2)]})

    def test_transaction_of_reads_and_writes(self):
        with self.assertRaises(self.db.exceptions.ClientError) as caught:
            self.db.execute_transaction(TransactStatements=[
                {"Statement": f"SELECT * FROM \"{self.name}\" WHERE pk = 'a'"},
                {"Statement": f"DELETE FROM \"{self.name}\" WHERE pk = 'b'"}])
        self.assertEqual(caught.exception.response["Error"]["Code"], INVALID)

    def test_exists_in_a_transaction(self):
        def run(value):
            self.db.execute_transaction(TransactStatements=[
                {"Statement": f"EXISTS(SELECT * FROM \"{self.name}\" WHERE pk = 'a' AND v = ?)",
                 "Parameters": [N(value)]},
                {"Statement": f"INSERT INTO \"{self.name}\" VALUE {{'pk': ?}}",
                 "Parameters": [S(f"n{value}")]}])

        run(1)
        with self.assertRaises(self.db.exceptions.TransactionCanceledException):
            run(2)
        self.assertEqual((self.get(self.name, pk=S("n1")), self.get(self.name, pk=S("n2"))),
                         ({"pk": S("n1")}, None))
