// --help fits one screen, and --help-all has everything.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cli/short_help.hpp"
#include "runtime/settings/options.hpp"
#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"

namespace cudp {
namespace {

/// The option's flag is in the text as a word.
bool names(const std::string& text, const std::string& key) {
  const std::string flag = "--" + key;
  for (std::size_t at = text.find(flag); at != std::string::npos; at = text.find(flag, at + 1)) {
    const std::size_t end = at + flag.size();
    if (end == text.size() || std::string(" \n,").find(text[end]) != std::string::npos) return true;
  }
  return false;
}

/// Returns the text that cudp writes on a terminal with this number of columns.
std::string on_terminal(const Arguments& words, unsigned short columns) {
  return run_on_terminal(with({cudp_binary()}, words), "", columns).terminal;
}

TEST(Help, OfTrainAndAuditFitsOneScreen) {
  const TemporaryFolder folder;
  for (const char* const command : {"train", "sweep", "audit"}) {
    const Finished f = run_cudp(folder, {command, "--help"});
    EXPECT_EQ(f.exit, 0);
    EXPECT_EQ(f.err, "");
    EXPECT_GT(lines_of(f.out).size(), 20u);
    EXPECT_LE(lines_of(f.out).size(), 40u) << f.out;
    for (const std::string& line : lines_of(f.out)) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_TRUE(names(f.out, "help-all")) << f.out;
  }
}

TEST(Help, AllHasEveryOption) {
  const TemporaryFolder folder;
  const Finished all = run_cudp(folder, {"train", "--help-all"});
  EXPECT_EQ(all.exit, 0);
  for (const Option& option : train_options())
    EXPECT_TRUE(names(all.out, option.key)) << option.key;
  EXPECT_NE(all.out.find("adult-logistic"), std::string::npos);
  const Finished audit = run_cudp(folder, {"audit", "--help-all"});
  for (const char* const key : {"canaries", "guesses", "confidence", "weight-decay"})
    EXPECT_TRUE(names(audit.out, key)) << key;
}

/// The short help has what privacy rests on, and the defaults of the table of options.
TEST(Help, TheShortOneIsMadeOfTheTableOfOptions) {
  const std::string text = help_lines_text(train_help_lines());
  for (const char* const key : {"dataset", "epsilon", "delta", "preset", "out", "resume"})
    EXPECT_TRUE(names(text, key)) << key;
  EXPECT_NE(text.find("--batch B           expected batch size [512]\n"), std::string::npos)
      << text;
  const HelpLine unknown[] = {{"no-such-option", "what"}};
  EXPECT_THROW(help_lines_text(unknown), std::logic_error);
}

TEST(Help, AsACommandIsTheFlag) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_cudp(folder, {"help"}).out, run_cudp(folder, {"--help"}).out);
  const Finished train = run_cudp(folder, {"help", "train"});
  EXPECT_EQ(train.exit, 0);
  EXPECT_EQ(train.out, run_cudp(folder, {"train", "--help"}).out);
}

TEST(Help, FitsTheTerminal) {
  const std::string text =
      "  --flag N                    What it does in many words, more than fit into one line\n"
      "  cudp train --dataset a-long-name-of-a-table.csv --epsilon 1\n"
      "Long sentences without an indent are broken, too.\n"
      "short\n";
  EXPECT_EQ(wrapped_help(text, 60),
            "  --flag N                    What it does in many words,\n"
            "                              more than fit into one line\n"
            "  cudp train --dataset a-long-name-of-a-table.csv \\\n"
            "      --epsilon 1\n"
            "Long sentences without an indent are broken, too.\n"
            "short\n");
  // A shell reads a broken example as it reads the whole one.
  EXPECT_EQ(
      wrapped_help("  cudp schema table.csv --target days --out file.toml   # what it does\n", 40),
      "  # what it does\n"
      "  cudp schema table.csv --target days \\\n"
      "      --out file.toml\n");
  EXPECT_EQ(wrapped_help(text, 30).find("Long sentences without an\nindent are broken, too.\n"),
            wrapped_help(text, 30).find("Long"));
  EXPECT_EQ(wrapped_help(text, 1000), text);
}

TEST(Help, HasNoLineOverTheWidth) {
  const TemporaryFolder folder;
  std::vector<Arguments> commands = {{"--help"}, {"train", "--help-all"}, {"audit", "--help-all"}};
  for (const char* const name : {"train", "schema", "eval", "predict", "export", "audit", "verify",
                                 "account", "calibrate", "info", "completion"})
    commands.push_back({name, "--help"});
  for (const Arguments& words : commands) {
    for (const unsigned short columns : {60, 80}) {
      const std::string shown = on_terminal(words, columns);
      EXPECT_GT(lines_of(shown).size(), 3u);
      for (std::string line : lines_of(shown)) {
        std::erase(line, '\r');
        EXPECT_LE(line.size(), columns) << line;
      }
      EXPECT_EQ(shown.find('\033'), std::string::npos);
    }
    // Into a file or a pipe: as on a terminal of 80 columns.
    for (const std::string& line : lines_of(run_cudp(folder, words).out))
      EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Answers, FitTheTerminal) {
  const TemporaryFolder folder;
  const Arguments account = args("account --q 0.01 --sigma 1 --steps 200 --delta 1e-6");
  const Arguments info = {"info"};
  for (const Arguments& words : {account, info}) {
    for (std::string line : lines_of(on_terminal(words, 40))) {
      line = line.substr(line.find('\033') == std::string::npos ? 0 : line.rfind('K') + 1);
      std::erase(line, '\r');
      EXPECT_LE(line.size(), 40u) << line;
    }
  }
  // A pipe gets a row a line.
  EXPECT_NE(run_cudp(folder, account).out.find("poisson-gaussian, q 0.01, sigma 1, steps 200\n"),
            std::string::npos);
}

TEST(Help, OfTheProgramListsTheCommands) {
  const TemporaryFolder folder;
  for (const char* const flag : {"--help", "-h"}) {
    const Finished f = run_cudp(folder, {flag});
    EXPECT_EQ(f.exit, 0);
    for (const char* const command : {"train", "eval", "account", "calibrate", "audit", "verify"})
      EXPECT_NE(f.out.find(command), std::string::npos) << command;
  }
  const Finished none = run_cudp(folder, {});
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("train"), std::string::npos);
  EXPECT_EQ(none.out, "");
}

}  // namespace
}  // namespace cudp
