#include "runtime/data/draft_schema.hpp"

#include <gtest/gtest.h>

#include "runtime/data/key_names.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/data/table_reader.hpp"
#include "tests/support/data_files.hpp"

namespace cudp {
namespace {

constexpr const char* kRows =
    "patient_id,age,\"Gr\xc3\xb6\xc3\x9f"
    "e, cm\",town,since,same,none,died\n"
    "p1,31,1.75,\"Sk\xc3\xb6vde, V\xc3\xa4st\",2020-01-31,3,,no\n"
    "p2,,1.80,Lund,2019-12-01,3,NA,yes\n"
    "p3,77,NA,,2021-06-15,3,,no\n";

TableSchema parsed(const std::string& draft) { return parse_schema(draft, "draft.toml"); }

TEST(DraftSchema, WithoutPublicRowsItIsOfTheHeaderAlone) {
  const TempFolder dir;
  const std::string one = dir.write("one.csv", kRows);
  const std::string header(kRows, std::string_view(kRows).find('\n') + 1);
  const std::string two = dir.write("two.csv", header + "not,to,be\nread \"at\xff all\n");
  const std::string draft = draft_schema(one, {});
  EXPECT_EQ(draft, draft_schema(two, {}));
  const TableSchema schema = parsed(draft);
  ASSERT_EQ(schema.columns.size(), 8u);
  EXPECT_EQ(schema.columns[2].name,
            "Gr\xc3\xb6\xc3\x9f"
            "e, cm");
  EXPECT_TRUE(std::holds_alternative<Id>(schema.columns[0].kind));
  EXPECT_TRUE(std::holds_alternative<Unstated>(schema.columns[1].kind));
  EXPECT_TRUE(std::holds_alternative<Label>(schema.columns[7].kind));
  EXPECT_EQ(first_incomplete(schema), "age");
  EXPECT_NE(draft.find("through noise"), std::string::npos);
  EXPECT_EQ(draft.find("Lund"), std::string::npos);
}

TEST(DraftSchema, PublicRowsGiveKindsAndBounds) {
  const TempFolder dir;
  const std::string path = dir.write("d.csv", kRows);
  const TableSchema schema = parsed(draft_schema(path, {.rows_are_public = true}));
  EXPECT_EQ(first_incomplete(schema), "");
  EXPECT_TRUE(std::holds_alternative<Id>(schema.columns[0].kind));
  const auto& age = std::get<Numeric>(schema.columns[1].kind);
  EXPECT_EQ(age.min, 31.0);
  EXPECT_EQ(age.max, 77.0);
  EXPECT_EQ(age.fill, 54.0);
  EXPECT_EQ(std::get<Numeric>(schema.columns[2].kind).max, 1.8);
  const auto& town = std::get<Categorical>(schema.columns[3].kind);
  EXPECT_EQ(town.values, (std::vector<std::string>{"Lund", "Sk\xc3\xb6vde, V\xc3\xa4st"}));
  EXPECT_TRUE(town.missing_has_column);
  const auto& since = std::get<Numeric>(schema.columns[4].kind);
  EXPECT_EQ(since.date_format, "%Y-%m-%d");
  EXPECT_TRUE(std::holds_alternative<Ignored>(schema.columns[5].kind));
  EXPECT_TRUE(std::holds_alternative<Ignored>(schema.columns[6].kind));
  EXPECT_EQ(std::get<Label>(schema.columns[7].kind).values,
            (std::vector<std::string>{"no", "yes"}));
  // The table that it was drafted from can be read by it.
  EXPECT_EQ(read_table(*open_bytes(path), schema, {}, 3).size(), 3u);
}

/// The lines that state a unit, as the owner of the table leaves them or makes them count.
std::string uncommented(std::string draft) {
  for (const char* line : {"# unit = ", "# max_rows = "}) draft.erase(draft.find(line), 2);
  return draft;
}

TEST(DraftSchema, SaysWhosePrivacyByTheNamesAlone) {
  const TempFolder dir;
  const std::string header = "visit_id,age,patient_id,days\n";
  const std::string path = dir.write("v.csv", header + "1,30,a,4\n2,31,a,5\n3,40,b,1\n");
  const std::string draft = draft_schema(path, {.label = "days"});
  EXPECT_NE(draft.find("a certificate is for each row"), std::string::npos) << draft;
  EXPECT_NE(draft.find("\n# unit = \"patient_id\"\n# max_rows = "), std::string::npos) << draft;
  TableSchema schema = parsed(draft);
  EXPECT_FALSE(schema.unit);
  EXPECT_TRUE(std::holds_alternative<Id>(schema.columns[0].kind));
  EXPECT_TRUE(std::holds_alternative<Ignored>(schema.columns[2].kind));
  schema = parsed(uncommented(draft));
  ASSERT_TRUE(schema.unit);
  EXPECT_EQ(schema.unit->column, "patient_id");
  // The values of private rows show nowhere, nor whether they repeat.
  EXPECT_EQ(draft_schema(dir.write("w.csv", header + "1,30,a,4\n2,31,b,5\n3,40,c,1\n"),
                         {.label = "days"}),
            draft);
  EXPECT_EQ(draft.find("repeat"), draft.find("repeat it")) << draft;
  const std::string none =
      draft_schema(dir.write("n.csv", "age,visit_id,days\n30,1,4\n"), {.label = "days"});
  EXPECT_NE(none.find("\n# unit = \"COLUMN\"\n"), std::string::npos) << none;
}

TEST(DraftSchema, OfPublicRowsItSaysWhatRepeats) {
  const TempFolder dir;
  const std::string path = dir.write(
      "v.csv", "visit_id,age,patient_id,died\n1,30,a,no\n2,31,a,yes\n3,40,b,no\n4,41,a,no\n");
  const std::string draft = draft_schema(path, {.rows_are_public = true, .label = "died"});
  EXPECT_NE(draft.find("repeats: 2 texts in 4 rows, up to 3 of one"), std::string::npos) << draft;
  EXPECT_NE(draft.find("no text comes twice"), std::string::npos) << draft;
  EXPECT_TRUE(std::holds_alternative<Id>(parsed(draft).columns[0].kind));
  EXPECT_TRUE(std::holds_alternative<Ignored>(parsed(draft).columns[2].kind));
  EXPECT_EQ(first_incomplete(parsed(uncommented(draft))), "");
  // What repeats names no rows.
  const std::string only =
      draft_schema(dir.write("o.csv", "patient_id,age,died\na,3,no\na,4,yes\n"),
                   {.rows_are_public = true, .label = "died"});
  EXPECT_TRUE(std::holds_alternative<Ignored>(parsed(only).columns[0].kind)) << only;
}

TEST(KeyNames, PersonsAndRows) {
  for (const char* name : {"patient_id", "PatientID", "patient", "MRN", "mrn_hash", "user",
                           "userid", "user id", "Customer No", "member-key", "subject",
                           "subject_nr", "emp_id", "household", "Email", "respondentNumber"})
    EXPECT_TRUE(names_persons(name)) << name;
  for (const char* name : {"visit_id", "row_id", "id", "uuid", "patient_age", "customer_segment",
                           "employee", "is_member", "family_size", "", "order_id", "age", "paid",
                           "humid", "account_type", "user_rating"})
    EXPECT_FALSE(names_persons(name)) << name;
  for (const char* name : {"visit_id", "row id", "ID", "id", "uuid", "EncounterID"})
    EXPECT_TRUE(names_rows(name)) << name;
  for (const char* name : {"paid", "age", "identity", ""}) EXPECT_FALSE(names_rows(name)) << name;
}

TEST(DraftSchema, OptionsAndEndings) {
  const TempFolder dir;
  EXPECT_EQ(delimiter_of("a/b.tsv"), '\t');
  EXPECT_EQ(delimiter_of("b.TSV.gz"), '\t');
  EXPECT_EQ(delimiter_of("b.tab"), '\t');
  EXPECT_EQ(delimiter_of("b.tsv.csv"), ',');
  EXPECT_EQ(delimiter_of("a.tsv/b"), ',');
  const std::string path = dir.write("d.csv", "died;age;fee\n1;17;2,5\n0;90;1\n1;20;-3,25\n");
  const TableSchema schema =
      parsed(draft_schema(path, {.rows_are_public = true, .label = "died", .delimiter = ";"}));
  EXPECT_EQ(schema.delimiter, ';');
  EXPECT_EQ(schema.decimal, ',');
  EXPECT_EQ(std::get<Numeric>(schema.columns[2].kind).min, -3.25);
  EXPECT_EQ(std::get<Label>(schema.columns[0].kind).values, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(
      refusal_of([&] { draft_schema(path, {.label = "dead", .delimiter = ";"}); }, dir.path()),
      "DIR/d.csv: expected a column 'dead', found none of that name in the header row");
  EXPECT_EQ(refusal_of([&] { draft_schema(path, {}); }, dir.path()),
            "DIR/d.csv, line 1: expected at least two columns, found one; the line has 2 ';': "
            "perhaps delimiter = \";\" in its schema, or cudp schema --delimiter \";\"");
}

TEST(DraftSchema, WhatHasNoKindSaysSo) {
  const TempFolder dir;
  std::string rows = "word,y\n";
  for (int i = 0; i < 1500; ++i) rows += "w" + std::to_string(i) + "," + std::to_string(i) + "\n";
  const std::string path = dir.write("d.csv", rows);
  const std::string draft = draft_schema(path, {.rows_are_public = true});
  EXPECT_NE(draft.find("more than 1000 different texts"), std::string::npos);
  EXPECT_NE(draft.find("more than 256 different values"), std::string::npos);
}

}  // namespace
}  // namespace cudp
