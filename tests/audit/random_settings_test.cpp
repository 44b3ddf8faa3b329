// Settings that nobody would think of together: made by machine from the table of options, trained
// on small data to one of several ends. What is refused is refused in one line and leaves nothing;
// a crash, a hang or exit code 1 is a fault, and so is whatever the checker (privacy/verify) finds
// between the run's transcript, its ledger and its certificate. A case that fails is printed as the
// shortest command that fails in the same way.
#include "tests/support/random_settings.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "privacy/verify/checker.hpp"
#include "runtime/base/error.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/transcript.hpp"
#include "runtime/verify/released_run.hpp"
#include "tests/audit/settings_search.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/recomputed_sums.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/settings_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

using namespace settings_data;

constexpr std::uint64_t kSeed = 20'261'124;
/// Number of settings among which every option is drawn.
constexpr int kManyDrawn = 400;

SeededKey proof_of_seed() {
  TrainConfig config;
  config.seed = 1;
  return SeededKey(config);
}

/// Writes the run down, and ends the process when the n-th noisy sum leaves.
class EndingTranscript : public Transcript {
 public:
  EndingTranscript(int file, Ending ending) : Transcript(proof_of_seed(), file), ending_(ending) {}
  void on_release(const ReleasedValue& what, std::span<std::byte> values) override {
    Transcript::on_release(what, values);
    if (what.purpose == Stream::noise && ++steps_ == ending_.at) ::raise(ending_.signal);
  }

 private:
  Ending ending_;
  std::size_t steps_ = 0;
};

/// What became of a setting.
struct Outcome {
  bool accepted = false;
  std::string fault{};  ///< empty: none
  std::string detail{};
  Recomputed oracle{};
};

/// That a run ended in a refusal with the same words.
bool ended_alike(const Ended& a, const Ended& b) {
  const auto words = [](const Ended& e) {
    return e.err.substr(std::min(e.err.find("cudp: "), e.err.size()));
  };
  return a.exit == b.exit && words(a) == words(b);
}

std::string left_by_end(const fs::path& run);

/// Nothing, or the certificate of what had to be released to know.
std::string left_by_refusal(const fs::path& run, const std::string& err) {
  if (!fs::exists(run)) return "";
  if (err.find("no weight changed") != std::string::npos) return left_by_end(run);
  const std::string text = content_of(run / "release/privacy.json");
  const auto certificate = nlohmann::json::parse(text, nullptr, false);
  const std::string status = certificate.is_object() ? certificate.value("status", "") : "";
  // dp-agd may find out in its first step.
  const bool in_a_step = err.find("the budget does not allow a single step") != std::string::npos;
  return status == "refused" || (in_a_step && status == "not finished")
             ? ""
             : "a refused run left a folder";
}

/// A run that ended leaves a certificate, a model and no key.
std::string left_by_end(const fs::path& run) {
  if (fs::exists(run / "release/NO-PRIVACY.txt")) return "";
  const auto certificate =
      nlohmann::json::parse(content_of(run / "release/privacy.json"), nullptr, false);
  if (!certificate.is_object() || certificate.value("status", "") != "finished")
    return "a finished run has no certificate that says so";
  if (!fs::exists(run / "release/model.safetensors")) return "a finished run has no model";
  if (certificate.value("max_rows", 1) > 1 && certificate.contains("training_examples") &&
      certificate["training_examples"] != kRows)
    return "a unit has other rows than its first ones";
  for (const auto& entry : fs::directory_iterator(run / "private")) {
    const std::string name = entry.path().filename();
    if (name == "key" || name.starts_with("checkpoint-")) return "a finished run kept " + name;
  }
  return "";
}

/// What the checker finds, cudp verify, or the oracle; empty where nothing speaks against the
/// certificate.
std::string convicted(const fs::path& run, const std::string& transcript, Recomputed& oracle) {
  if (fs::exists(run / "release/NO-PRIVACY.txt")) return "";
  const verify::Verdict verdict =
      verify::check({.certificate = content_of(run / "release/privacy.json"),
                     .ledger = content_of(run / "private/ledger"),
                     .transcript = transcript,
                     .settings = content_of(run / "release/config.toml")});
  if (!verdict.findings.empty())
    return verdict.findings.front().rule + ": " + verdict.findings.front().what;
  if (fs::exists(run / "release/model.safetensors")) {
    verify::Bounds bounds;
    for (const verify::Statement& s : check_released_run(open_released_run(run), bounds))
      if (!s.wrong.empty()) return "cudp verify: " + s.name + ": " + s.wrong.front();
  }
  oracle = recompute_sums(run, transcript);
  return oracle.fault;
}

Outcome train(const RandomSettings& settings, const fs::path& work) {
  fs::remove_all(work / "run");
  write_text(work / RandomSettings::kFile, settings.file());
  const TranscriptMemory memory;
  const auto run = [&](const std::vector<std::string>& arguments, Ending ending) {
    return run_observed(work, arguments, [&memory, ending]() -> ReleaseObserver* {
      ::alarm(kLongest);
      replace_cuda(&emulated_cuda());
      return new EndingTranscript(memory.file(), ending);
    });
  };
  const auto judged = [&](const Ended& e) {
    Outcome outcome{.accepted = true};
    std::string finding;
    try {
      finding = convicted(work / "run", memory.content(), outcome.oracle);
    } catch (const std::exception& error) {
      finding = std::string("evidence that nobody can read: ") + error.what();
    }
    if (!finding.empty()) {
      outcome.fault = finding.substr(0, finding.find(':'));
      outcome.detail = finding + "; " + e.err.substr(0, 200);
    }
    return outcome;
  };
  const auto fault = [](std::string what, const Ended& e) {
    return Outcome{true, std::move(what), fmt::format("exit {}: {}", e.exit, e.err.substr(0, 600))};
  };
  const std::map<std::string, std::vector<Ending>> ways = {
      {"finished", {{}}},
      {"interrupted", {{SIGINT, 2}, {}}},
      {"killed", {{SIGKILL, 3}, {SIGKILL, 1}, {}}},
      {"fresh noise", {{SIGKILL, 2}, {}}},
      {"killed in the fresh noise", {{SIGKILL, 2}, {SIGKILL, 2}, {}}}};
  const std::vector<Ending>& endings = ways.at(settings.ending);
  const bool fresh = settings.ending.ends_with("fresh noise");
  for (std::size_t i = 0; i < endings.size(); ++i) {
    std::vector<std::string> arguments = settings.arguments();
    if (i > 0) {
      arguments = {"train", "--resume", "run", "--quiet", "--json"};
      if (fresh && i == 1) arguments.emplace_back("--fresh-noise");
    }
    const Ended e = run(arguments, endings[i]);
    if (is_refusal(e)) {
      if (last_words(e.err) != 1) return fault("a refusal is not one line", e);
      if (i == 0) {
        const std::string left = left_by_refusal(work / "run", e.err);
        return left.empty() ? Outcome{} : fault(left, e);
      }
      // What was spent may leave nothing for another key.
      if (fresh && e.exit == 3) return judged(e);
      // A run that was killed goes on to the end that it would have had: dp-agd may find out in its
      // first step that the budget allows none.
      if (!fresh && e.exit == 3) {
        const Outcome outcome = judged(e);
        fs::remove_all(work / "run");
        if (ended_alike(run(settings.arguments(), {}), e)) return outcome;
      }
      return fault("a run cannot go on", e);
    }
    const bool interrupted = endings[i].signal == SIGINT &&
                             e.exit == static_cast<int>(Exit::again) &&
                             e.err.find("interrupted at step") != std::string::npos;
    const bool killed = endings[i].signal == SIGKILL && e.exit == -SIGKILL;
    if (interrupted || killed) continue;
    // Without privacy no gradient is clipped: steps of 1e30 end here.
    if (e.exit == 1 && e.err.find("cudp: training diverged") != std::string::npos)
      return {.accepted = true};
    if (e.exit != 0) return fault(fmt::format("exit code {}", e.exit), e);
    if (const std::string left = left_by_end(work / "run"); !left.empty()) return fault(left, e);
    return judged(e);
  }
  return {true, "a run never ended", ""};
}

/// Leaves away what is not needed for the same fault.
RandomSettings shrink(RandomSettings settings, const std::string& fault, const fs::path& work) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = 0; i < settings.flags.size(); ++i) {
      const std::string& key = settings.flags[i].first;
      if (key == "dataset" || key == "out" || key == "seed") continue;
      RandomSettings less = settings;
      less.flags.erase(less.flags.begin() + static_cast<std::ptrdiff_t>(i));
      if (key == "config") {  // what the file says becomes flags, to be left away one by one
        less.flags.insert(less.flags.end(), less.in_file.begin(), less.in_file.end());
        less.in_file.clear();
      }
      if (train(less, work).fault != fault) continue;
      settings = std::move(less);
      smaller = true;
      break;
    }
  }
  return settings;
}

/// Every n-th setting from `first` on; writes what was covered, and faults, one a line.
void work_through(int first, int every, const fs::path& folder) {
  const fs::path work = folder / ("work" + std::to_string(first));
  const fs::path enough = folder / "enough";
  write_data(work);
  fs::current_path(work);  // where the settings' files are, for the oracle too
  std::ofstream out(folder / ("found" + std::to_string(first)));
  SettingsMaker maker(seed_or(kSeed));
  int number = 0;
  for (int i = 0; number < how_many() && i < kMostTries && !fs::exists(enough); ++i) {
    const RandomSettings settings = wants_one_kind() ? maker.any() : maker.next();
    if (!is_wanted(settings) || number++ % every != first) continue;
    const Outcome outcome = train(settings, work);
    if (!outcome.fault.empty()) {
      const RandomSettings least =
          ends_at_first_fault() ? settings : shrink(settings, outcome.fault, work);
      std::string detail = outcome.detail;
      std::ranges::replace(detail, '\n', ' ');
      out << "fault\t" << outcome.fault << "; " << detail << "; " << least.command() << "\n";
      if (ends_at_first_fault()) write_text(enough, "");
    } else {
      const Recomputed& o = outcome.oracle;
      out << (outcome.accepted ? "accepted" : "refused") << "\t" << i << " " << o.sums << " "
          << o.examples << " " << o.left_out << " " << o.longest << " " << o.error << "\n";
    }
    out.flush();
  }
}

TEST(RandomSettings, TrainOrAreRefusedInOneLine) {
  const TemporaryFolder folder;
  const int workers =
      side_by_side([&](int first, int every) { work_through(first, every, folder.path()); });

  std::set<int> accepted;
  int refused = 0;
  Recomputed oracle;
  for (int w = 0; w < workers; ++w) {
    std::ifstream in(folder / ("found" + std::to_string(w)));
    for (std::string line; std::getline(in, line);) {
      const std::string kind = line.substr(0, line.find('\t'));
      const std::string rest = line.substr(line.find('\t') + 1);
      if (kind == "fault") ADD_FAILURE() << rest;
      refused += kind == "refused" ? 1 : 0;
      if (kind != "accepted") continue;
      int number = 0;
      Recomputed o;
      std::istringstream(rest) >> number >> o.sums >> o.examples >> o.left_out >> o.longest >>
          o.error;
      accepted.insert(number);
      oracle.sums += o.sums;
      oracle.examples += o.examples;
      oracle.left_out += o.left_out;
      oracle.longest = std::fmax(oracle.longest, o.longest);
      oracle.error = std::fmax(oracle.error, o.error);
    }
  }
  if (ends_at_first_fault()) {
    std::cout << "looked at " << accepted.size() << " trainings" << std::endl;
    return;
  }

  SettingsMaker maker(seed_or(kSeed));
  std::unordered_set<std::uint64_t> covered;
  std::set<std::string> drawn, reached;
  std::map<std::string, int> ways;
  for (int i = 0; i < std::max(how_many(), kManyDrawn); ++i) {
    const RandomSettings settings = i < how_many() ? maker.next() : maker.any();
    std::vector<std::string> keys;
    for (const auto* flags : {&settings.flags, &settings.in_file})
      for (const auto& [key, value] : *flags) keys.push_back(key);
    if (settings.ending != "finished") keys.emplace_back("resume");
    if (settings.ending.ends_with("fresh noise")) keys.emplace_back("fresh-noise");
    drawn.insert(keys.begin(), keys.end());
    if (!accepted.contains(i)) continue;
    const std::vector<std::uint64_t> pairs = maker.pairs_of(settings);
    covered.insert(pairs.begin(), pairs.end());
    reached.insert(keys.begin(), keys.end());
    ++ways[settings.ending];
    ++ways[settings.data];
    for (const char* key : {"rng", "device"})
      for (const std::string& value : find_option(key)->choices)
        if (settings.has(key, value)) ++ways[std::string(key) + " " + value];
    if (std::ranges::any_of(settings.flags, [](const auto& f) { return f.first == "threads"; }))
      ++ways["threads"];
  }
  const auto left_out = [](const std::set<std::string>& keys) {
    std::string never;
    for (const Option& option : train_options())
      if (!keys.contains(option.key)) never += " " + option.key;
    return never;
  };
  std::cout << how_many() << " settings: " << accepted.size() << " trained, " << refused
            << " refused; of " << maker.seen() << " pairs of levels that settings can have "
            << maker.made() << " were made, " << covered.size()
            << " trained; options never trained:" << left_out(reached) << "\ntrained:";
  for (const auto& [way, count] : ways) std::cout << " " << way << " " << count << ",";
  std::cout << "\nthe oracle made " << oracle.sums << " sums again, of " << oracle.examples
            << " gradients, and left out " << oracle.left_out << "; the longest contribution is "
            << oracle.longest << " of the sensitivity, the largest distance " << oracle.error
            << " of what rounding may explain" << std::endl;
  // A preset is for published data, which a test has not; --compare-with asks for another run,
  // --evaluate-with for a library. Several ranks are not observed, and --resume-or-start is one of
  // two others. --metric is of a picture, --license of the model card. Flags of arrays are tried by
  // arrays_cli_test.cpp, --rows-in by rows_in_cli_test.cpp, --metrics-file by queue_cli_test.cpp,
  // --tensorboard and --log-json by watch_cli_test.cpp.
  const char* const not_drawn =
      " input-shape channels-last arrays target-bounds test-arrays preset "
      "compare-with evaluate-with rows-in ranks share-device sum-by rank-timeout resume-or-start "
      "metric license metrics-file tensorboard log-json";
  EXPECT_EQ(left_out(drawn), not_drawn);
  if (how_many() >= kManyDrawn) {
    EXPECT_EQ(left_out(reached), not_drawn);
  }
  if (how_many() >= 160) {
    for (const char* way :
         {"finished", "interrupted", "killed", "fresh noise", "killed in the fresh noise", "table",
          "units", "matrix", "texts", "images", "rng chacha20", "rng philox", "device cpu",
          "device cuda", "threads"})
      EXPECT_GE(ways[way], 3) << way;
  }
  EXPECT_GT(accepted.size(), static_cast<std::size_t>(how_many()) / 3);
  EXPECT_GT(oracle.sums, accepted.size());
  EXPECT_LE(oracle.longest, 1.0);
  EXPECT_GT(oracle.longest, 0.99);
}

/// What chance found once, each as the shortest settings that had the fault.
std::vector<RandomSettings> found_once() {
  return {
      // Where noise is large, the variance of a coordinate is a difference of squares that cancel.
      {.data = "images",
       .ending = "finished",
       .flags = {{"method", "adaclip"},
                 {"dataset", "images"},
                 {"epsilon", "0.5"},
                 {"delta", "1e-5"},
                 {"batch", "31"},
                 {"seed", "616"},
                 {"out", "run"}},
       .in_file = {}},
      // Where steps cost next to nothing, some rows have their epsilon by Renyi divergences.
      {.data = "texts",
       .ending = "interrupted",
       .flags = {{"method", "adp-sgd"},
                 {"dataset", "notes.csv"},
                 {"embedding", "vectors.safetensors"},
                 {"embedding-tensor", "b"},
                 {"vocabulary", "words.txt"},
                 {"epsilon", "3"},
                 {"delta", "1e-5"},
                 {"batch", "27"},
                 {"steps", "6"},
                 {"seed", "360"},
                 {"out", "run"},
                 {"calibration", "theorem41"}},
       .in_file = {}},
  };
}

TEST(RandomSettings, WhatWasFoundOnceHolds) {
  const TemporaryFolder folder;
  const auto number = [&](std::size_t i) { return folder / ("found" + std::to_string(i)); };
  side_by_side([&](int first, int every) {
    const fs::path work = folder / ("work" + std::to_string(first));
    write_data(work);
    fs::current_path(work);
    for (auto i = static_cast<std::size_t>(first); i < found_once().size();
         i += static_cast<std::size_t>(every)) {
      const Outcome outcome = train(found_once()[i], work);
      write_text(number(i), !outcome.fault.empty()     ? outcome.detail
                            : outcome.oracle.sums == 0 ? "the oracle made no sum again"
                                                       : "none");
    }
  });
  for (std::size_t i = 0; i < found_once().size(); ++i)
    EXPECT_EQ(content_of(number(i)), "none") << found_once()[i].command();
}

}  // namespace
}  // namespace cudp
