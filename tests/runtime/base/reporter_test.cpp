#include "runtime/base/reporter.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

Progress halfway() {
  Progress p;
  p.epoch = 2.5;
  p.epochs = 5.0;
  p.step = 500;
  p.steps = 1000;
  p.epsilon = 1.2345;
  p.test_accuracy = 0.97531;
  p.examples_per_second = 48'123.4;
  p.seconds_left = 3725.0;
  return p;
}

TEST(Reporter, ProgressIsOneReadableLine) {
  EXPECT_EQ(progress_line(halfway(), 200),
            "epoch 2/5 [==========>         ] step 500/1000  epsilon 1.235  test 97.53 %  "
            "48,123 examples/s  1h 02m left");
  EXPECT_EQ(progress_line(halfway(), 20).size(), 20u);
  Progress end = halfway();
  end.step = end.steps;
  end.test_accuracy.reset();
  EXPECT_NE(progress_line(end, 200).find("[====================] step 1000/1000"),
            std::string::npos);
  EXPECT_EQ(progress_line(end, 200).find("left"), std::string::npos);
}

TEST(Reporter, Durations) {
  EXPECT_EQ(duration_text(0.2), "0s");
  EXPECT_EQ(duration_text(59.6), "1m 00s");
  EXPECT_EQ(duration_text(185.0), "3m 05s");
  EXPECT_EQ(duration_text(7260.0), "2h 01m");
}

TEST(Reporter, KeepsALogOfWhatItSays) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  {
    Reporter reporter(true);
    const mode_t before = ::umask(0);
    reporter.keep_log(folder / "log.txt");
    ::umask(before);
    reporter.info("a line with {braces}");
    reporter.warn("careful");
    for (std::uint64_t step = 0; step <= 1000; ++step) {
      Progress p = halfway();
      p.step = step;
      reporter.progress(p);
    }
  }
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_EQ(shown.find("braces"), std::string::npos) << shown;  // quiet
  EXPECT_NE(shown.find("warning: careful"), std::string::npos) << shown;
  const std::string log = content_of(folder / "log.txt");
  EXPECT_NE(log.find("a line with {braces}"), std::string::npos) << log;
  EXPECT_EQ(std::filesystem::status(folder / "log.txt").permissions(),
            std::filesystem::perms(0600));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2 + 10);  // a line each tenth of the way
  EXPECT_EQ(log.find('['), std::string::npos) << log;
}

/// Returns the lines of a text as objects of JSON.
std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(Reporter, LogsAsJson) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  {
    Reporter reporter(false, LogForm::json);
    reporter.keep_log(folder / "log.txt");
    reporter.info("a line with {braces}, \"quotes\" and \xff");
    reporter.warn("careful");
    reporter.report_to_owner("for the file alone");
    reporter.work("reading", 0.5);
    reporter.progress(halfway());
    reporter.log_end("interrupted");
  }
  const auto shown = json_lines(testing::internal::GetCapturedStderr());
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[0]["message"], "a line with {braces}, \"quotes\" and \xef\xbf\xbd");
  EXPECT_EQ(shown[0]["level"], "info");
  EXPECT_EQ(shown[0]["time"].get<std::string>().size(), 20u);
  EXPECT_EQ(shown[1]["message"], "careful");
  EXPECT_EQ(shown[1]["level"], "warning");
  EXPECT_EQ(shown[2]["message"], progress_text(halfway()));
  const auto kept = json_lines(content_of(folder / "log.txt"));
  ASSERT_EQ(kept.size(), 5u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(kept[i]["message"], shown[i]["message"]);
  EXPECT_EQ(kept[2]["message"], "PRIVATE for the file alone");
  EXPECT_EQ(kept[3]["message"], shown[2]["message"]);
  EXPECT_EQ(kept[4]["message"], "interrupted");
  EXPECT_EQ(kept[4]["level"], "error");
}

TEST(Reporter, HasColoursOnTerminalsOnly) {
  testing::internal::CaptureStderr();
  Reporter(false).warn("careful");
  EXPECT_EQ(testing::internal::GetCapturedStderr().find('\033'), std::string::npos);
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "no terminals here";
  EXPECT_TRUE(may_colour(terminal));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(may_colour(terminal));
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(may_colour(terminal)) << "as if it were not set";
  ::unsetenv("NO_COLOR");
  ::close(terminal);
}

}  // namespace
}  // namespace cudp
