"""Attribute values: every type comes out as it went in, or is refused in DynamoDB's words."""
import functools
import re

from support import INVALID, B, Case, N, S, Shared, refusals


class RoundTrips(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create()

    def there_and_back(self, value, expected=None):
        self.db.put_item(TableName=self.name, Item={"pk": S(self.id()), "v": value})
        self.assertEqual(self.get(self.name, pk=S(self.id()))["v"],
                         value if expected is None else expected)

    def test_string(self):
        self.there_and_back(S("plain"))

    def test_empty_string(self):
        self.there_and_back(S(""))

    def test_unicode(self):
        self.there_and_back(S("äöü ßé 日本語 \U0001f980 \u200d\ufeff"))

    def test_control_characters(self):
        self.there_and_back(S("".join(chr(i) for i in range(0x80))))

    def test_quotes_and_backslashes(self):
        self.there_and_back(S('"\\/\b\f\n\r\t'))

    def test_last_code_point(self):
        self.there_and_back(S("\U0010ffff\ud7ff\ue000\uffff"))

    def test_binary(self):
        self.there_and_back(B(bytes(range(256))))

    def test_empty_binary(self):
        self.there_and_back(B(b""))

    def test_binary_of_every_length(self):
        self.there_and_back({"L": [B(b"\xff" * i) for i in range(40)]})

    def test_true_false_null(self):
        self.there_and_back({"L": [{"BOOL": True}, {"BOOL": False}, {"NULL": True}]})

    def test_empty_list_and_map(self):
        self.there_and_back({"L": [{"L": []}, {"M": {}}]})

    def test_nested_document(self):
        self.there_and_back({"M": {"a": {"L": [S("x"), N(1), {"M": {"b": {"NULL": True}}}]},
                                   "a.b": S("dots"), "#": {"BOOL": True}}})

    def test_string_set(self):
        self.there_and_back({"SS": ["a", "b", "c"]})

    def test_number_set(self):
        self.there_and_back({"NS": ["1", "2", "30"]})

    def test_binary_set(self):
        self.there_and_back({"BS": [b"\x00", b"\x01\x02"]})

    def test_set_with_empty_string(self):
        self.there_and_back({"SS": ["", "a"]})

    def test_38_digits(self):
        self.there_and_back(N("12345678901234567890123456789012345678"))

    def test_38_digits_behind_the_point(self):
        self.there_and_back(N("0.12345678901234567890123456789012345678"))

    def test_38_digits_and_negative(self):
        self.there_and_back(N("-9999999999999999999.9999999999999999999"))

    def test_largest(self):
        nines = "9" * 38
        self.there_and_back(N("9." + nines[1:] + "E+125"), N(nines + "0" * 88))

    def test_smallest(self):
        self.there_and_back(N("1E-130"), N("0." + "0" * 129 + "1"))

    def test_zeros_are_trimmed(self):
        for text, kept in (("0", "0"), ("-0", "0"), ("007", "7"), ("1.500", "1.5"),
                           ("+3", "3"), ("1e3", "1000"), ("1.0", "1"), (".5", "0.5"),
                           ("0e10", "0"), ("120E-1", "12"), ("-0.00", "0")):
            with self.subTest(text):
                self.there_and_back(N(text), N(kept))

    def test_32_levels(self):
        value = S("deep")
        for _ in range(31):
            value = {"L": [value]}
        self.there_and_back(value)

    def test_long_attribute_name(self):
        name = "n" * 65535
        self.db.put_item(TableName=self.name, Item={"pk": S("long name"), name: N(1)})
        self.assertEqual(self.get(self.name, pk=S("long name"))[name], N(1))

    def test_names_are_any_text(self):
        item = {"pk": S("names"), "a b": N(1), "ä.#:": N(2), "\x00": N(3), "SELECT": N(4)}
        self.db.put_item(TableName=self.name, Item=item)
        self.assertEqual(self.get(self.name, pk=S("names")), item)

    def test_a_thousand_attributes(self):
        item = {"pk": S("many"), **{f"a{i}": N(i) for i in range(1000)}}
        self.db.put_item(TableName=self.name, Item=item)
        self.assertEqual(self.get(self.name, pk=S("many")), item)

    def test_item_of_400_kb(self):
        item = {"pk": S("big"), "v": S("x" * (400 * 1024 - 2 - 3 - 1))}
        self.db.put_item(TableName=self.name, Item=item)
        self.assertEqual(self.get(self.name, pk=S("big")), item)

    def test_item_of_400_kb_and_a_byte(self):
        item = {"pk": S("big"), "v": S("x" * (400 * 1024 - 2 - 3))}
        self.invalid("Item size has exceeded the maximum allowed size", self.db.put_item,
                     TableName=self.name, Item=item)

    def test_big_binary_of_random_bytes(self):
        data = bytes((i * 7919 + i // 256) % 256 for i in range(300000))
        self.there_and_back(B(data))


class KeyTypes(Case):
    def test_number_keys_by_value(self):
        name = self.table("N")
        self.db.put_item(TableName=name, Item={"pk": N("1.0"), "v": S("a")})
        self.db.put_item(TableName=name, Item={"pk": N("1"), "v": S("b")})
        self.assertEqual(self.get(name, pk=N("100E-2")), {"pk": N(1), "v": S("b")})
        self.assertEqual(self.db.scan(TableName=name)["Count"], 1)

    def test_binary_keys(self):
        name = self.table("B", "B")
        for sort in (b"\xff", b"\x00", b"\x00\x00", b"\x80", b"\x7f"):
            self.db.put_item(TableName=name, Item={"pk": B(b"\x00\xff"), "sk": B(sort)})
        found = self.db.query(TableName=name, KeyConditionExpression="pk = :p",
                              ExpressionAttributeValues={":p": B(b"\x00\xff")})
        self.assertEqual([item["sk"]["B"] for item in found["Items"]],
                         [b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff"])

    def test_number_order(self):
        name = self.table("S", "N")
        numbers = ["-1E+100", "-10", "-9.5", "-0.001", "0", "1E-100", "0.5", "2", "10", "1E+100"]
        for number in sorted(numbers):
            self.db.put_item(TableName=name, Item={"pk": S("a"), "sk": N(number)})
        found = self.db.query(TableName=name, KeyConditionExpression="pk = :p",
                              ExpressionAttributeValues={":p": S("a")})
        self.assertEqual([float(item["sk"]["N"]) for item in found["Items"]],
                         [float(number) for number in numbers])

    def test_string_order_is_by_bytes(self):
        name = self.table("S", "S")
        words = ["A", "Z", "a", "aa", "b", "é", "\uffff", "\U00010000"]
        for word in reversed(words):
            self.db.put_item(TableName=name, Item={"pk": S("a"), "sk": S(word)})
        found = self.db.query(TableName=name, KeyConditionExpression="pk = :p",
                              ExpressionAttributeValues={":p": S("a")})
        self.assertEqual([item["sk"]["S"] for item in found["Items"]], words)

    def test_longest_keys(self):
        name = self.table("S", "S")
        key = {"pk": S("p" * 2048), "sk": S("s" * 1024)}
        self.db.put_item(TableName=name, Item=key)
        self.assertEqual(self.get(name, **key), key)


def put(value, **more):
    return {"Item": {"pk": S("a"), "v": value, **more}}


PARAMETERS = "One or more parameter values were invalid: "


@refusals(
    no_type=("put_item", put({}), INVALID,
             "Supplied AttributeValue is empty, must contain exactly one of the supported "
             "datatypes"),
    null_false=("put_item", put({"NULL": False}), INVALID,
                PARAMETERS + "Null attribute value types must have the value of true"),
    empty_string_set=("put_item", put({"SS": []}), INVALID,
                      PARAMETERS + "An string set  may not be empty"),
    empty_number_set=("put_item", put({"NS": []}), INVALID,
                      PARAMETERS + "An number set  may not be empty"),
    empty_binary_set=("put_item", put({"BS": []}), INVALID,
                      PARAMETERS + "Binary sets should not be empty"),
    string_twice=("put_item", put({"SS": ["b", "a", "b"]}), INVALID,
                  PARAMETERS + "Input collection [b, a, b] contains duplicates."),
    number_twice=("put_item", put({"NS": ["1", "1.0"]}), INVALID,
                  "Input collection contains duplicates"),
    binary_twice=("put_item", put({"BS": [b"b", b"b"]}), INVALID,
                  PARAMETERS + "Input collection [Yg==, Yg==]of type BS contains duplicates."),
    no_number=("put_item", put(N("twelve")), INVALID,
               "The parameter cannot be converted to a numeric value: twelve"),
    not_a_number=("put_item", put(N("NaN")), INVALID,
                  "The parameter cannot be converted to a numeric value: NaN"),
    infinity=("put_item", put(N("Infinity")), INVALID,
              "The parameter cannot be converted to a numeric value: Infinity"),
    hex_number=("put_item", put(N("0x10")), INVALID,
                "The parameter cannot be converted to a numeric value: 0x10"),
    empty_number=("put_item", put(N("")), INVALID,
                  re.compile("^The parameter cannot be converted to a numeric value")),
    digits_39=("put_item", put(N("1" * 39)), INVALID,
               "Attempting to store more than 38 significant digits in a Number"),
    too_large=("put_item", put(N("1E126")), INVALID,
               "Number overflow. Attempting to store a number with magnitude larger than "
               "supported range"),
    too_small=("put_item", put(N("1E-131")), INVALID,
               "Number underflow. Attempting to store a number with magnitude smaller than "
               "supported range"),
    too_deep=("put_item", put(functools.reduce(
        lambda value, _: {"L": [value]}, range(32), S("x"))), INVALID,
        "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels "
        "beyond supported limit"),
    empty_key=("put_item", {"Item": {"pk": S("")}}, INVALID,
               "One or more parameter values are not valid. The AttributeValue for a key "
               "attribute cannot contain an empty string value. Key: pk"),
    key_missing=("put_item", {"Item": {"v": S("a")}}, INVALID,
                 PARAMETERS + "Missing the key pk in the item"),
    key_type=("put_item", {"Item": {"pk": N(1)}}, INVALID,
              PARAMETERS + "Type mismatch for key pk expected: S actual: N"),
    long_key=("put_item", {"Item": {"pk": S("p" * 2049)}}, INVALID,
              PARAMETERS + "Size of hashkey has exceeded the maximum size limit of2048 bytes"),
    get_key_missing=("get_item", {"Key": {"v": S("a")}}, INVALID,
                     "The provided key element does not match the schema"),
    get_key_type=("get_item", {"Key": {"pk": N(1)}}, INVALID,
                  "The provided key element does not match the schema"),
    get_key_extra=("get_item", {"Key": {"pk": S("a"), "sk": S("b")}}, INVALID,
                   "The provided key element does not match the schema"),
    delete_key_type=("delete_item", {"Key": {"pk": B(b"1")}}, INVALID,
                     "The provided key element does not match the schema"),
    update_empty_key=("update_item", {"Key": {"pk": S("")}}, INVALID,
                      "One or more parameter values are not valid. The AttributeValue for a key "
                      "attribute cannot contain an empty string value. Key: pk"),
)
class Refusing(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create()
