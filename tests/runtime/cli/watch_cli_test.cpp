// How a training is watched: --tensorboard and --log-json, which change nothing of the run.
#include <algorithm>
#include <csignal>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/results/event_file.hpp"
#include "tests/support/crash_fixture.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

class CliWatch : public CliCrash {
 protected:
  Arguments seeded(const std::string& out, const Arguments& more = {}) const {
    return with(with({"train", "--dataset", table_.table, "--schema", table_.schema, "--test-data",
                      table_.test, "--out", folder_ / out},
                     args("--test-data-is-public --size-is-public --model logistic --seed 7 "
                          "--epsilon 3 --delta 1e-5 --batch 128 --steps 30 --accountant rdp "
                          "--threads 1 --device cpu")),
                more);
  }
  /// The events that the run's metrics make.
  std::string events_of(const std::string& out) const {
    return encode_events(decode_metrics(file(out + "/release/metrics.jsonl")));
  }
};

/// Files of a folder by name, with their contents.
std::map<std::string, std::string> contents_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder).string()] = content_of(entry.path().string());
  return files;
}

std::vector<nlohmann::json> log_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (const std::string& line : lines_of(text)) {
    lines.push_back(nlohmann::json::parse(line, nullptr, false));
    EXPECT_TRUE(lines.back().is_object()) << line;
    if (!lines.back().is_object()) continue;
    EXPECT_EQ(lines.back().size(), 3u) << line;
    for (const char* key : {"time", "level", "message"}) EXPECT_TRUE(lines.back().contains(key));
  }
  return lines;
}

TEST_F(CliWatch, EventsAreThoseOfMetricsAndChangeNothing) {
  ASSERT_EQ(run_cudp(folder_, seeded("plain", {"--quiet"})).exit, 0);
  const Finished watched =
      run_cudp(folder_, seeded("run", {"--tensorboard", folder_ / "board", "--log-json"}));
  ASSERT_EQ(watched.exit, 0) << watched.err;
  EXPECT_EQ(file(std::string("board/") + EventFile::kName), events_of("run"));
  EXPECT_GT(decode_metrics(file("run/release/metrics.jsonl")).size(), 3u);
  EXPECT_EQ(contents_in(folder_ / "run/release"), contents_in(folder_ / "plain/release"));
  // Nothing keeps where the events are.
  for (const auto& [name, content] : contents_in(folder_ / "run"))
    EXPECT_EQ(content.find("board"), std::string::npos) << name;
  EXPECT_EQ(run_cudp(folder_, {"verify", folder_ / "run"}).exit, 0);
}

TEST_F(CliWatch, EventsLackWhatIsPrivate) {
  Arguments words = seeded("run", {"--quiet", "--tensorboard", folder_ / "board"});
  std::erase(words, "--test-data-is-public");
  ASSERT_EQ(run_cudp(folder_, words).exit, 0);
  const std::string events = file(std::string("board/") + EventFile::kName);
  EXPECT_EQ(events, events_of("run"));
  EXPECT_EQ(events.find("accuracy"), std::string::npos);
  EXPECT_NE(file("run/private/metrics.jsonl").find("test_accuracy"), std::string::npos);
}

TEST_F(CliWatch, ALogOfJsonHasALineAMessage) {
  const Finished f = run_cudp(folder_, seeded("run", {"--log-json"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const auto shown = log_lines(f.err);
  const auto kept = log_lines(file("run/private/log.txt"));
  ASSERT_GT(shown.size(), 3u);
  // What both have is the same; the file begins when there is a folder.
  std::size_t at = 0;
  for (const auto& line : kept) {
    const std::string message = line["message"];
    if (message.starts_with("PRIVATE ")) continue;
    while (at < shown.size() && shown[at]["message"] != message) ++at;
    EXPECT_LT(at, shown.size()) << message;
  }
  // Also from a config file, and with the error as the last line.
  write_text(folder_ / "c.toml", "log-json = true\n");
  const Finished refused = run_cudp(folder_, seeded("run", {"--config", folder_ / "c.toml"}));
  EXPECT_EQ(refused.exit, 2);
  const auto last = log_lines(refused.err).back();
  EXPECT_EQ(last["level"], "error");
  EXPECT_NE(last["message"].get<std::string>().find("found a finished run; type another folder"),
            std::string::npos);
}

TEST_F(CliWatch, AResumedRunContinuesItsEvents) {
  const Finished stopped =
      signal_at(with(training("run"), {"--tensorboard", folder_ / "board", "--log-json"}), "run",
                40, SIGTERM);
  ASSERT_EQ(stopped.exit, 75) << stopped.err;
  const auto last = log_lines(stopped.err).back();
  EXPECT_EQ(last["level"], "error");
  EXPECT_NE(last["message"].get<std::string>().find("interrupted at step"), std::string::npos);
  EXPECT_EQ(log_lines(file("run/private/log.txt")).back()["message"], last["message"]);
  const std::string events = std::string("board/") + EventFile::kName;
  const std::string before = file(events);
  EXPECT_EQ(before, events_of("run"));

  const Arguments resumed = {"train", "--resume", folder_ / "run", "--quiet"};
  // Another run's events are left alone.
  fs::create_directory(folder_ / "other");
  write_text((folder_ / "other/") + EventFile::kName, "something else");
  const Finished refused = run_cudp(folder_, with(resumed, {"--tensorboard", folder_ / "other"}));
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("expected the events of this run"), std::string::npos) << refused.err;
  const Finished done = run_cudp(folder_, with(resumed, {"--tensorboard", folder_ / "board"}));
  ASSERT_EQ(done.exit, 0) << done.err;
  EXPECT_EQ(file(events), events_of("run"));
  EXPECT_TRUE(file(events).starts_with(before));
  EXPECT_GT(file(events).size(), before.size());
}

TEST_F(CliWatch, RefusesPlacesForEventsBeforeItWrites) {
  const auto refused = [&](const Arguments& more) {
    const Finished f = run_cudp(folder_, seeded("run", more));
    EXPECT_EQ(f.exit, 2);
    EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
    return f.err;
  };
  EXPECT_NE(refused({"--quiet", "--tensorboard", "s3://bucket/board"}).find("of this machine"),
            std::string::npos);
  EXPECT_NE(refused({"--quiet", "--tensorboard", folder_ / "run/release"}).find("outside release/"),
            std::string::npos);
  EXPECT_NE(refused({"--quiet", "--tensorboard", table_.table}).find("expected a folder"),
            std::string::npos);
  const Finished plain =
      run_cudp(folder_, with(train_on(table_, folder_ / "run"),
                             {"--method", "sgd", "--quiet", "--tensorboard", folder_ / "board"}));
  EXPECT_EQ(plain.exit, 2);
  EXPECT_NE(plain.err.find("--method sgd"), std::string::npos) << plain.err;
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  EXPECT_FALSE(fs::exists(folder_ / "board"));
}

}  // namespace
}  // namespace cudp
