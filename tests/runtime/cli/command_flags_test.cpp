#include "runtime/cli/command_flags.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/config/option_rows.hpp"

namespace cudp {
namespace {

struct Flags {
  std::string name;
  std::optional<std::uint64_t> count;
  std::optional<std::string> file;
  std::vector<double> numbers;
  std::vector<std::string> words;
  int small = 7;
};

std::vector<Option> rows() {
  using namespace option_rows;
  return {positional(text("name", "TEXT", &Flags::name, "whose")),
          integer("count", "N", &Flags::count, kWhole, "how many"),
          needs("count", text("file", "FILE", &Flags::file, "where")),
          list("numbers", "X ...", &Flags::numbers, kAboveZero, "which"),
          list("words", "W ...", &Flags::words, {}, "which words"),
          integer("small", "N", &Flags::small, kThreads, "a small number"),
          json_option()};
}

/// What the flags come to; an input error's text where they are refused.
struct Parsed {
  Flags flags;
  bool json = false;
  std::string error;
};
Parsed parse(const std::string& arguments, Repeated repeated = Repeated::refused) {
  Parsed outcome;
  CLI::App app{"cudp"};
  CLI::App* const command = app.add_subcommand("do", "");
  const CommandFlags flags(*command, rows(), repeated);
  try {
    app.parse("do " + arguments);
    const TrainConfig values = flags.values();
    outcome.flags = values.of<Flags>();
    outcome.json = values.json;
  } catch (const CLI::ParseError& e) {
    outcome.error = e.what();
  } catch (const InputError& e) {
    outcome.error = e.what();
  }
  return outcome;
}

TEST(CommandFlags, FillInWhatRowsSay) {
  const Parsed none = parse("me");
  EXPECT_EQ(none.error, "");
  EXPECT_EQ(none.flags.name, "me");
  EXPECT_FALSE(none.flags.count || none.flags.file || none.json);
  EXPECT_EQ(none.flags.small, 7);

  const Parsed all = parse("me --count 3 --file a.png --numbers 1 2.5,3e-2 --words a,b --json");
  EXPECT_EQ(all.error, "");
  EXPECT_EQ(all.flags.count, 3u);
  EXPECT_EQ(all.flags.file, "a.png");
  EXPECT_EQ(all.flags.numbers, (std::vector<double>{1.0, 2.5, 0.03}));
  EXPECT_EQ(all.flags.words, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(all.json);
}

TEST(CommandFlags, RefuseWhatIsOutOfRangeOrMissing) {
  EXPECT_EQ(parse("me --count -1").error, "--count: expected a whole number >= 0, found -1");
  EXPECT_EQ(parse("me --count 1.5").error, "--count: expected a whole number >= 0, found \"1.5\"");
  EXPECT_EQ(parse("me --small 4097").error,
            "--small: expected a whole number of 0 to 4096, found 4097");
  EXPECT_EQ(parse("me --numbers 1,x").error, "--numbers: expected a number > 0, found \"x\"");
  EXPECT_EQ(parse("me --numbers 1,0").error, "--numbers: expected a number > 0, found \"0\"");
  EXPECT_EQ(parse("me --file a").error, "--file requires --count");
  EXPECT_EQ(parse("").error, "name is required");
}

TEST(CommandFlags, GivenTwiceAreRefusedUnlessTheLastCounts) {
  EXPECT_NE(parse("me --small 1 --small 2").error, "");
  const Parsed last = parse("me --small 1 --small 2", Repeated::last_counts);
  EXPECT_EQ(last.error, "");
  EXPECT_EQ(last.flags.small, 2);
}

}  // namespace
}  // namespace cudp
