// What takes long shows on a terminal that it goes on, and nowhere else.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/verify/released_run.hpp"
#include "tests/support/cudp_process.hpp"

namespace cudp {
namespace {

/// Scores rows that come late, by a shell whose standard output is thrown away.
std::string scoring_late_rows(const SmallTable& t, const std::string& run) {
  return "(head -1 " + t.test + "; sleep 3; tail -n +2 " + t.test + ") | " + cudp_binary() +
         " eval " + run + " --dataset - > /dev/null";
}

/// Returns the text that a shell command writes on a terminal.
std::string shown_on_terminal(const std::string& command) {
  const OnTerminal t = run_on_terminal({"/bin/sh", "-c", command});
  EXPECT_EQ(t.exit, 0) << t.terminal;
  return t.terminal;
}

TEST(ProgressCli, EvalShowsOnATerminalAloneThatItGoesOn) {
  const TemporaryFolder folder;
  const SmallTable t = write_small_table(folder);
  const std::string run = folder / "run";
  const Finished f =
      run_cudp(folder, {"train", "--dataset", t.table, "--schema", t.schema, "--epsilon", "3",
                        "--delta", "1e-5", "--steps", "2", "--quiet", "--out", run});
  ASSERT_EQ(f.exit, 0) << f.err;

  const std::string shown = shown_on_terminal(scoring_late_rows(t, run));
  const std::size_t line = shown.find("\rscoring standard input: 2 s\033[K");
  ASSERT_NE(line, std::string::npos) << shown;
  // It is gone before the next line is written.
  EXPECT_NE(shown.find("\r\033[K", line + 1), std::string::npos) << shown;
  EXPECT_LT(shown.rfind("scoring"), shown.find("warning: these are exact numbers")) << shown;

  const std::string log = folder / "log";
  shown_on_terminal("{ " + scoring_late_rows(t, run) + "; } 2> " + log);
  EXPECT_EQ(content_of(log).find("scoring"), std::string::npos) << content_of(log);
  EXPECT_NE(content_of(log).find("warning: these are exact numbers"), std::string::npos);
}

std::size_t lines_with(const std::string& text, const std::string& part) {
  std::size_t lines = 0;
  for (const std::string& line : lines_of(text)) lines += line.find(part) != std::string::npos;
  return lines;
}

/// Durations of a run whose number of rows is private are for its owner.
TEST(ProgressCli, TimingsNameThePhasesOfARun) {
  const TemporaryFolder folder;
  const SmallTable t = write_small_table(folder);
  const auto training = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",     "--dataset", t.table,   "--schema", t.schema,
                                      "--epsilon", "3",         "--delta", "1e-5",     "--steps",
                                      "2",         "--seed",    "1",       "--device", "cpu",
                                      "--out",     folder / out};
    words.insert(words.end(), more.begin(), more.end());
    return run_cudp(folder, words);
  };
  const std::string header = "seconds of each phase";
  const Finished owner = training("private", {"--timings"});
  ASSERT_EQ(owner.exit, 0) << owner.err;
  EXPECT_EQ(lines_with(owner.err, header), 0u) << owner.err;
  EXPECT_EQ(lines_with(owner.out, header), 0u) << owner.out;
  const std::string log = content_of(folder / "private/private/log.txt");
  for (const char* phase : {"program start", "data and device", "accountant", "training",
                            "certificate", "pictures", "all of it"})
    EXPECT_EQ(lines_with(log, std::string("PRIVATE   ") + phase + " "), 1u) << phase << "\n" << log;

  const Finished everybody = training("public", {"--timings", "--size-is-public"});
  ASSERT_EQ(everybody.exit, 0) << everybody.err;
  EXPECT_EQ(lines_with(everybody.err, header), 1u) << everybody.err;
  EXPECT_EQ(lines_with(content_of(folder / "public/private/log.txt"), header), 1u);

  const Finished silent = training("silent", {});
  ASSERT_EQ(silent.exit, 0) << silent.err;
  EXPECT_EQ(lines_with(content_of(folder / "silent/private/log.txt"), header), 0u);
  for (const char* name : {"model.safetensors", "privacy.json", "metrics.jsonl", "config.toml"})
    EXPECT_EQ(content_of(folder / (std::string("silent/release/") + name)),
              content_of(folder / (std::string("private/release/") + name)))
        << name;
}

TEST(ProgressCli, VerifyHearsHowManyRowsHaveBeenChecked) {
  const TemporaryFolder folder;
  const SmallTable t = write_small_table(folder);
  const Finished f =
      run_cudp(folder, {"train", "--dataset", t.table, "--schema", t.schema, "--epsilon", "3",
                        "--delta", "1e-5", "--epochs", "4", "--quiet", "--out", folder / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  verify::Bounds bounds;
  std::vector<double> shares;
  bounds.on_rows = [&](double share) { shares.push_back(share); };
  check_released_run(open_released_run(folder / "run"), bounds);
  EXPECT_EQ(shares, (std::vector<double>{0.25, 0.5, 0.75, 1.0}));
}

}  // namespace
}  // namespace cudp
