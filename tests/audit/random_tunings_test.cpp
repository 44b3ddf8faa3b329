// Random settings of `cudp tune` and `cudp sweep`: those of trainings, with lists of values and the
// commands' own flags. A tuning or a sweep ends with runs that `cudp verify` accepts, or is refused
// in one line. CUDP_SETTINGS and CUDP_SETTINGS_SEED as for RandomSettings.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "runtime/verify/released_run.hpp"
#include "tests/audit/settings_search.hpp"
#include "tests/support/random_settings.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/settings_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kListsSeed = 20'261'127;
/// A list command costs as much as some ten trainings.
int how_many_lists() { return std::max(1, how_many() / 10); }

/// A random call of `cudp tune` or `cudp sweep`.
struct ListsCall {
  bool is_tuning = false, dry_run = false;
  double epsilon = 0.0;  ///< of a tuning
  std::vector<std::string> words = {};

  std::string command() const {
    std::string text = "cudp";
    for (const std::string& word : words) text += " " + word;
    return text;
  }
};

class ListsMaker {
 public:
  explicit ListsMaker(std::uint64_t seed) : settings_(seed), random_(seed + 1) {}

  ListsCall next() {
    std::map<std::string, std::string> flags;
    std::string method;
    do {
      const RandomSettings s = settings_.any();
      flags = {s.flags.begin(), s.flags.end()};
      for (const auto& [key, value] : s.in_file) flags[key] = value;
      method = flags["method"];
    } while (!method_entry(method).gives_privacy);
    // Flags of single trainings.
    for (const char* const key : {"config", "threads", "unsafe-diagnostics", "timings", "tuned"})
      flags.erase(key);
    flags["device"] = "cpu";
    ListsCall call{.is_tuning = !chance(0.3)};
    if (call.is_tuning) tuning_flags(flags, call);
    if (flags.contains("test-data") && chance(0.7)) flags["test-data-is-public"] = "";
    if (!flags.contains("holdout") && chance(0.5)) flags["size-is-public"] = "";
    add_lists(flags, method);
    if (!call.is_tuning) {
      if (chance(0.3)) {
        flags["repeats"] = "2";
        flags.erase("seed");
      }
      if (chance(0.3) && flags.contains("size-is-public") && !flags.contains("sigma")) {
        flags["total-epsilon"] = flags.at("epsilon");
        flags["total-delta"] = flags.at("delta");
        flags.erase("epsilon");
        flags.erase("delta");
      }
    }
    if (chance(0.4)) flags["jobs"] = of({"1", "2"});
    call.words = {call.is_tuning ? "tune" : "sweep"};
    for (const auto& [key, value] : flags) {
      call.words.push_back("--" + key);
      if (!value.empty()) call.words.push_back(value);
    }
    return call;
  }

 private:
  bool chance(double p) { return std::uniform_real_distribution<>()(random_) < p; }
  std::string of(const std::vector<std::string>& all) { return all[random_() % all.size()]; }

  /// Replaces most settings that a tuning refuses, and adds its own flags.
  void tuning_flags(std::map<std::string, std::string>& flags, ListsCall& call) {
    for (const char* const key :
         {"holdout-epsilon", "holdout-delta", "fresh-noise-allowed", "tensorboard", "sigma"})
      if (flags.contains(key) && !chance(0.1)) flags.erase(key);
    if (!flags.contains("epsilon")) flags["epsilon"] = of({"1", "3"});
    if (!flags.contains("delta")) flags["delta"] = "1e-5";
    call.epsilon = std::stod(flags["epsilon"]);
    flags["runs"] = of({"1", "1.2", "1.5", "2"});
    flags["most-runs"] = of({"3", "6", "8", "12"});
    if (chance(0.7)) flags["eta"] = of({"-0.5", "0", "1", "3"});
    if (chance(0.15)) flags["score"] = of({"public", "holdout"});
    if (chance(0.15)) {
      flags["dry-run"] = "";
      call.dry_run = true;
      if (chance(0.5)) flags["expected-spread"] = of({"0.01", "0.1"});
    }
  }

  /// Gives up to two settings two values.
  void add_lists(std::map<std::string, std::string>& flags, const std::string& method) {
    struct Listed {
      const char* key;
      const char* values;
    };
    static const std::vector<Listed> all = {
        {"lr", "0.1,0.5"},        {"clip", "0.2,1"},    {"batch", "20,40"},
        {"momentum", "0,0.9"},    {"steps", "2,5"},     {"optimizer", "momentum,adam"},
        {"l2", "0.1,0.5"},        {"splits", "3,6"},    {"schedule", "constant,cosine"},
        {"candidates", "10,20"},  {"ema", "0.5,0.9"},   {"weight-decay", "0,0.01"},
        {"adaclip-floor", "1,2"}, {"epsilon", "0.5,2"}, {"sampling", "poisson,allocation"}};
    for (int i = 0; i < 2; ++i) {
      if (i == 1 && chance(0.4)) return;
      const Listed& listed = all[random_() % all.size()];
      if (find_option(listed.key) == nullptr || !takes(method_entry(method), listed.key)) continue;
      if (std::string(listed.key) == "steps") flags.erase("epochs");
      flags[listed.key] = listed.values;
    }
  }

  SettingsMaker settings_;
  std::mt19937_64 random_;
};

/// Returns what `cudp verify` objects to in a released run; "" if nothing.
std::string objection(const fs::path& run) {
  const auto certificate =
      nlohmann::json::parse(content_of(run / "release/privacy.json"), nullptr, false);
  if (!certificate.is_object()) return "no certificate";
  verify::Bounds bounds;
  for (const verify::Statement& s : check_released_run(open_released_run(run), bounds))
    if (!s.wrong.empty()) return "cudp verify: " + s.name + ": " + s.wrong.front();
  return "";
}

/// Returns what is wrong with a finished tuning.
std::string fault_of_tuning(const fs::path& out, double epsilon) {
  if (const std::string wrong = objection(out); !wrong.empty()) return wrong;
  const auto certificate = nlohmann::json::parse(content_of(out / "release/privacy.json"));
  if (!certificate.contains("tuning")) return "a tuned run states no tuning";
  if (!(certificate["epsilon"].get<double>() <= epsilon)) return "more epsilon than was asked for";
  if (fs::exists(out / "private/tuning-key")) return "a finished tuning kept its key";
  const auto scores = nlohmann::json::parse(content_of(out / "private/scores.json"));
  const std::string winner = scores["released"];
  if (content_of(out / "release/model.safetensors") !=
      content_of(out / "private/runs" / winner / "release/model.safetensors"))
    return "not the best training's model";
  return "";
}

/// Returns what is wrong with a refused tuning. If its noisy row count, which was released, allows
/// no plan, it leaves a certificate of the whole budget.
std::string fault_of_refused(const fs::path& out, double epsilon) {
  const fs::path file = out / "release/privacy.json";
  if (!fs::exists(file)) return "";
  const auto certificate = nlohmann::json::parse(content_of(file));
  if (certificate["status"] != "not finished") return "a refused tuning is not called unfinished";
  return certificate["epsilon"] == epsilon ? "" : "a refused tuning states another budget";
}

/// Runs the call. Returns what is wrong, or "" and whether it ended (accepted) or was refused. With
/// CUDP_SHOW_REFUSALS the reason of a refusal is printed.
std::string fault_of_call(const ListsCall& call, const fs::path& work, bool& accepted) {
  const fs::path out = work / "run";
  fs::remove_all(out);
  const Ended e = run_observed(work, call.words, []() -> ReleaseObserver* {
    ::alarm(kLongest);
    return nullptr;
  });
  const auto with_output = [&](const std::string& what) {
    return what.empty() ? ""
                        : what + "; exit " + std::to_string(e.exit) + ": " + e.err.substr(0, 500);
  };
  accepted = e.exit == 0;
  if (is_refusal(e)) {
    if (std::getenv("CUDP_SHOW_REFUSALS") != nullptr)
      std::cout << e.err << "  " << call.command() << std::endl;
    if (last_words(e.err) != 1) return with_output("a refusal is not one line");
    return with_output(call.is_tuning ? fault_of_refused(out, call.epsilon) : "");
  }
  if (e.exit != 0) return with_output("it did not end");
  if (call.dry_run) return fs::exists(out) ? "a dry run left a folder" : "";
  if (call.is_tuning) return with_output(fault_of_tuning(out, call.epsilon));
  int runs = 0;
  for (const auto& run : fs::directory_iterator(out / "runs")) {
    if (!run.is_directory()) continue;
    ++runs;
    if (const std::string wrong = objection(run); !wrong.empty()) return with_output(wrong);
  }
  return runs > 0 ? "" : "a sweep without runs";
}

TEST(RandomSettings, TuningsAndSweepsEndOrAreRefusedInOneLine) {
  const TemporaryFolder folder;
  const auto found = [&](int i) { return folder / ("call" + std::to_string(i)); };
  side_by_side([&](int first, int every) {
    const fs::path work = folder / ("lists" + std::to_string(first));
    settings_data::write_data(work);
    fs::current_path(work);
    ListsMaker maker(seed_or(kListsSeed));
    for (int i = 0; i < how_many_lists(); ++i) {
      const ListsCall call = maker.next();
      if (i % every != first) continue;
      bool accepted = false;
      const std::string fault = fault_of_call(call, work, accepted);
      write_text(found(i), !fault.empty() ? fault + "\n" + call.command()
                           : accepted     ? call.is_tuning ? "tuned" : "swept"
                                          : "refused");
    }
  });
  std::map<std::string, int> ends;
  for (int i = 0; i < how_many_lists(); ++i) {
    const std::string end = fs::exists(found(i)) ? content_of(found(i)) : "no result";
    if (end == "tuned" || end == "swept" || end == "refused")
      ++ends[end];
    else
      ADD_FAILURE() << end;
  }
  std::cout << how_many_lists() << " calls: " << ends["tuned"] << " tuned, " << ends["swept"]
            << " swept, " << ends["refused"] << " refused" << std::endl;
  if (how_many() < 160) return;
  EXPECT_GT(ends["tuned"], 0);
  EXPECT_GT(ends["swept"], 0);
}

}  // namespace
}  // namespace cudp
