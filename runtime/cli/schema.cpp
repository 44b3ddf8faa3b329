#include <filesystem>
#include <iostream>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/out_file.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/draft_schema.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr const char* kSchemaExamples = R"(Examples:
  cudp schema patients.csv --out patients.csv.schema.toml   # names from the header; the rest is yours to state
  cudp schema survey.tsv --public                           # of public rows: kinds, categories and bounds too
  cudp schema patients.csv --label died --delimiter ";"
  cudp schema patients.csv --target days_in_ward            # a number is predicted, in place of a class
)";

struct SchemaFlags {
  std::string table;
  std::string out;
  std::string label;
  std::string target;
  std::string delimiter;
  bool rows_are_public = false;
};

std::vector<Option> schema_options() {
  using namespace option_rows;
  return {
      positional(text("table", "TEXT", &SchemaFlags::table, "a CSV or TSV file with a header row")),
      text("out", "FILE", &SchemaFlags::out,
           "write the schema here, where no file is yet; to stdout if not given"),
      toggle("public", &SchemaFlags::rows_are_public,
             "the rows are public: draft kinds, categories and bounds from them too"),
      text("label", "NAME", &SchemaFlags::label,
           "the column of the class; label, class, target or the last one, if not given"),
      text("target", "NAME", &SchemaFlags::target,
           "the column of the number to predict, in place of a class"),
      text("delimiter", "C", &SchemaFlags::delimiter,
           "one character; a tab for .tsv, otherwise a comma, if not given"),
  };
}

int write_draft(const SchemaFlags& flags) {
  if (flags.table.empty()) throw InputError("schema: expected a table to draft it for, found none");
  if (flags.delimiter.size() > 1 || flags.delimiter == "\n" || flags.delimiter == "\"")
    throw InputError("--delimiter: expected one character, found " + shown(flags.delimiter));
  if (!flags.label.empty() && !flags.target.empty())
    throw InputError("--target: expected either --label or --target, found both");
  if (!flags.out.empty() && fs::exists(flags.out))
    throw InputError(flags.out + ": expected a name that no file has yet, found one");
  check_out_folder(flags.out);
  const std::string text = draft_schema(flags.table, {.rows_are_public = flags.rows_are_public,
                                                      .label = flags.label,
                                                      .target = flags.target,
                                                      .delimiter = flags.delimiter});
  if (flags.out.empty())
    std::cout << text;
  else
    write_atomically(flags.out, text);
  return 0;
}

}  // namespace

void add_schema_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "schema",
               .description = "Draft of a table's schema",
               .examples = kSchemaExamples,
               .options = schema_options(),
               .run = [](const TrainConfig& c) { return write_draft(c.of<SchemaFlags>()); }});
}

}  // namespace cudp
