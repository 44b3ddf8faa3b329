// A forger changes every statement of released runs, one at a time; `cudp verify` finds each change
// that makes a promise stronger or removes one. With CUDP_FORGE=all more runs, and with that or the
// name of one the settings too (scripts/check.sh forge).
#include "tests/support/forger.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/report/write.hpp"
#include "runtime/verify/released_run.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/settings_data.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// CUDP_FORGE: all runs, or the name of one.
std::string asked() {
  const char* const forge = std::getenv("CUDP_FORGE");
  return forge != nullptr ? forge : "";
}
bool is_all() { return asked() == "all"; }

/// A run whose release is changed.
struct Forged {
  const char* name;
  Arguments words;
  bool often = false;      ///< in the ordinary tests, too
  bool loses_key = false;  ///< half-way
  bool is_tuned = false;   ///< the released training of a tuning
};

const Arguments kSmall = {"--batch", "40", "--steps", "6"};

std::vector<Forged> runs() {
  const Arguments table = {"--dataset", "visits.csv"};
  const auto of = [](const Arguments& more) { return with({"--dataset", "rows.csv"}, more); };
  const auto units = [](const Arguments& more) { return with({"--dataset", "visits.csv"}, more); };
  const auto target = [](const Arguments& more) { return with({"--dataset", "stays.csv"}, more); };
  const Arguments held = {"--holdout", "0.25", "--holdout-epsilon", "8", "--holdout-delta", "1e-6"};
  return {
      {"dpsgd", of(with(kSmall, {"--size-is-public", "--accountant", "rdp"})), true},
      {"allocation",
       of({"--batch", "40", "--epochs", "3", "--sampling", "allocation", "--size-is-public"}),
       true},
      {"allocation-private", of({"--batch", "40", "--epochs", "2", "--sampling", "allocation"})},
      {"private", of({"--batch", "40", "--epochs", "2"})},
      {"held-out", units(with(kSmall, held)), true},
      {"held-out-target", target(with(kSmall, held))},
      {"held-out-only", of(with(kSmall, {"--holdout", "0.25"}))},
      {"units", units(with(kSmall, {"--size-is-public"}))},
      {"target", target(with(kSmall, {"--method", "norm-bound", "--loss", "huber"}))},
      {"pld", of(with(kSmall, {"--size-is-public", "--sigma", "2"}))},
      {"advanced", of(with(kSmall, {"--method", "sgd-adv", "--size-is-public"}))},
      {"decay",
       of({"--method", "dpsgd-decay", "--size-is-public", "--batch", "60", "--epochs", "3",
           "--accountant", "rdp"}),
       false},
      {"adp", of(with(kSmall, {"--method", "adp-sgd", "--schedule", "polynomial"}))},
      {"quantile", of(with(kSmall, {"--method", "dpsgd-quantile"})), false},
      {"adaclip", of(with(kSmall, {"--method", "adaclip", "--size-is-public"}))},
      {"dpis", of({"--method", "dpis", "--batch", "60", "--epochs", "2"})},
      {"dpis-adaptive", of({"--method", "dpis", "--batch", "60", "--epochs", "2",
                            "--dpis-adaptive-clip", "--size-is-public"})},
      {"dp-agd", of({"--method", "dp-agd", "--splits", "6"})},
      {"dp-agd-laplace", units({"--method", "dp-agd", "--splits", "6", "--noisy-min", "laplace",
                                "--conversion", "classical"})},
      {"dp-agd-batch",
       of({"--method", "dp-agd", "--splits", "6", "--mini-batch", "100", "--size-is-public"})},
      {"objpert", of({"--method", "objpert"})},
      {"outpert", units({"--method", "outpert", "--size-is-public"})},
      {"outpert-held-out", of(with({"--method", "outpert"}, held))},
      {"privgene", of({"--method", "privgene", "--generations", "8", "--candidates", "20"}), false},
      {"pca", of(with(kSmall, {"--features", "pca", "--feature-dimensions", "2"})), false},
      {"weights", of(with(kSmall, {"--class-weights", "1,3", "--normalise", "unit"}))},
      {"seeded", of(with(kSmall, {"--seed", "3", "--rng", "philox", "--unsafe-diagnostics"}))},
      {"test", of(with(kSmall, {"--test-data", "test.csv", "--test-data-is-public"}))},
      {"init",
       of(with(kSmall, {"--size-is-public", "--model", "mlp", "--init", "start.safetensors",
                        "--freeze", "fc1"})),
       true},
      {"private-test", of(with(kSmall, {"--test-data", "test.csv"}))},
      {"lost-key",
       of({"--batch", "40", "--steps", "3000", "--checkpoint-every", "7", "--size-is-public",
           "--accountant", "rdp", "--eval-every", "100"}),
       false, true},
      {"lost-key-filter",
       of({"--batch", "2", "--steps", "3000", "--checkpoint-every", "7", "--method", "dpsgd-decay",
           "--fresh-noise-allowed", "--noise-decay", "0.005", "--eval-every", "5"}),
       false, true},
      {"refused", of(with(kSmall, {"--batch", "500"}))},
      {"tuned", units(with(kSmall, {"--lr", "0.5,1", "--runs", "2", "--most-runs", "6"})), false,
       false, true},
  };
}

/// Changes that are not found since nothing is promised by what they change, or less than before.
struct Exempt {
  const char* file;
  const char* field;          ///< names, with '|' between; '*' at the end of one: all that begin so
  std::set<std::string> how;  ///< empty: whatever
  const char* reason;         ///< ends with ", by chance" if some runs need it and others do not
  const char* run = "*";      ///< as field; after '!' all others
};

const std::vector<Exempt>& exempt() {
  static const std::vector<Exempt> all = {
#include "tests/audit/forger_exempt.def"
  };
  return all;
}

bool matches(const std::string& pattern, const std::string& text) {
  if (pattern.ends_with('*') && !pattern.ends_with("/*"))
    return text.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == text;
}

bool is_one_of(std::string_view list, const std::string& text) {
  const bool other = list.starts_with('!');
  if (other) list.remove_prefix(1);
  bool found = list.empty() && text.empty();
  while (!list.empty()) {
    const std::size_t end = std::min(list.find('|'), list.size());
    found = found || matches(std::string(list.substr(0, end)), text);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return found != other;
}

enum class Verdict { found, missed, broke };

Verdict verdict_of(const fs::path& run, verify::Bounds& bounds) {
  try {
    const ReleasedRun r = open_released_run(run);
    if (r.status != "finished" && r.status != "refused") return Verdict::found;
    const auto all = check_released_run(r, bounds);
    return std::ranges::all_of(all, [](const auto& s) { return s.wrong.empty(); }) ? Verdict::missed
                                                                                   : Verdict::found;
  } catch (const InputError&) {
    return Verdict::found;  // exit code 2
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return Verdict::broke;
  }
}

constexpr const char* kPageFiles[] = {kReportPage, kPrivacyText, kModelCard};

bool is_page(const std::string& file) {
  return std::ranges::find(kPageFiles, file) != std::end(kPageFiles);
}

/// Puts the pages of a release folder back.
class Restored {
 public:
  explicit Restored(fs::path release) : release_(std::move(release)) {
    for (const char* const page : kPageFiles)
      if (fs::exists(release_ / page)) pages_[page] = content_of(release_ / page);
  }
  ~Restored() {
    for (const auto& [page, content] : pages_)
      if (!fs::exists(release_ / page) || content_of(release_ / page) != content)
        write_text(release_ / page, content);
  }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  fs::path release_;
  std::map<std::string, std::string> pages_;
};

/// Makes the pages of forged files, if these can be read.
void remake_pages(const fs::path& release) {
  try {
    write_release_pages(release, read_release_files(release));
  } catch (const std::exception&) {
  }
}

class Forger : public testing::Test {
 protected:
  void SetUp() override {
    std::uint32_t state = 7;
    const auto next = [&](unsigned n) {
      return ((state = state * 1664525u + 1013904223u) >> 16) % n;
    };
    std::string visits = "who,age,hours,ill\n", stays = "who,age,hours,days\n", test = visits;
    for (int i = 0; i < 360; ++i) {
      const unsigned age = 17 + next(74), hours = next(41), who = next(150);
      const std::string cells = fmt::format("p{},{},{},", who, age, hours);
      const std::string row = cells + (age + hours + next(20) > 80 ? "yes\n" : "no\n");
      (i < 300 ? visits : test) += row;
      if (i < 300) stays += cells + std::to_string((age + hours) / 4 + next(9)) + "\n";
    }
    for (const char* const name : {"visits.csv", "rows.csv"}) write_text(folder_ / name, visits);
    write_text(folder_ / "stays.csv", stays);
    write_text(folder_ / "test.csv", test);
    settings_data::write_weights(folder_ / "start.safetensors", {{"fc1.weight", {1000, 2}},
                                                                 {"fc1.bias", {1000}},
                                                                 {"fc2.weight", {1, 1000}},
                                                                 {"fc2.bias", {1}}});
    const std::string label = R"({name = "ill", kind = "label", values = ["no", "yes"]})";
    write_text(folder_ / "visits.csv.schema.toml", schema("unit = \"who\"\nmax_rows = 2\n", label));
    write_text(folder_ / "rows.csv.schema.toml", schema("", label));
    write_text(folder_ / "stays.csv.schema.toml",
               schema("", R"({name = "days", kind = "target", min = 0, max = 40})"));
  }
  static std::string schema(const std::string& unit, const std::string& last) {
    return "name = \"rows\"\n" + unit + R"(columns = [
  {name = "who", kind = "ignore"},
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  )" + last +
           ",\n]\n";
  }

  void train(const Forged& run) const {
    const Arguments words =
        with({run.is_tuned ? "tune" : "train", "--epsilon", "3", "--delta", "1e-5", "--threads",
              "1", "--device", "cpu", "--quiet", "--out", folder_ / run.name},
             run.words);
    if (!run.loses_key) {
      // A noisy row count below the batch ends a run: some 4 of 100 with held-out units.
      const bool is_refused = std::string(run.name) == "refused";
      Finished f = CudpProcess(folder_, words, folder_.path()).wait();
      for (int again = 0; again < 6 && f.exit == 2 && !is_refused; ++again) {
        fs::remove_all(folder_ / run.name);
        f = CudpProcess(folder_, words, folder_.path()).wait();
      }
      ASSERT_EQ(f.exit, is_refused ? 2 : 0) << f.err;
      return;
    }
    CudpProcess process(folder_, words, folder_.path());
    const fs::path folder = folder_ / run.name;
    while (newest_checkpoint_file(folder).empty() ||
           newest_checkpoint_file(folder).filename() < "checkpoint-2")
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.signal(SIGKILL);
    process.wait();
    fs::remove(newest_checkpoint_file(folder));
    fs::remove(folder / "private/key");
    const Finished f = run_cudp(folder_, {"train", "--resume", folder, "--quiet"});
    ASSERT_EQ(f.exit, 0) << f.err;
  }

  TemporaryFolder folder_;
};

TEST_F(Forger, IsFoundWhereAPromiseWouldBeStronger) {
  std::vector<Forged> chosen;
  for (const Forged& run : runs())
    if (is_all() || asked() == run.name || (asked().empty() && run.often)) chosen.push_back(run);
  TextsOfFields texts;
  for (const Forged& run : chosen) {
    ASSERT_NO_FATAL_FAILURE(train(run)) << run.name;
    collect_texts(folder_ / (std::string(run.name) + "/release"), texts);
  }
  std::set<std::size_t> used;
  std::map<std::string, std::size_t> missed;  // by file, field and change
  std::size_t changes = 0, found = 0, exempted = 0;
  for (const Forged& run : chosen) {
    SCOPED_TRACE(run.name);
    const fs::path forged = folder_ / "forged";
    fs::remove_all(forged);
    fs::copy(folder_ / (std::string(run.name) + "/release"), forged);
    verify::Bounds bounds;
    for (const auto& s : check_released_run(open_released_run(forged), bounds)) {
      for (const std::string& wrong : s.wrong) ADD_FAILURE() << s.name << ": " << wrong;
    }
    for (const Forgery& f : forgeries_of(forged, texts)) {
      if (asked().empty() && f.file == "config.toml") continue;
      const fs::path file = forged / f.file;
      const bool was_there = fs::exists(file);
      const std::string before = was_there ? content_of(file) : "";
      if (f.content)
        write_text(file, *f.content);
      else
        fs::remove(file);
      // A forger makes the pages again, so that only the other statements give the change away.
      const Restored pages(forged);
      if (!is_page(f.file)) remake_pages(forged);
      const Verdict verdict = verdict_of(forged, bounds);
      if (was_there)
        write_text(file, before);
      else
        fs::remove(file);
      ++changes;
      const std::string what = f.file + " " + f.field + " " + f.how;
      ASSERT_NE(verdict, Verdict::broke) << what;
      if (verdict == Verdict::found) {
        ++found;
        continue;
      }
      const auto reason = std::ranges::find_if(exempt(), [&](const Exempt& e) {
        return e.file == f.file && is_one_of(e.field, f.field) && is_one_of(e.run, run.name) &&
               (e.how.empty() || e.how.contains(f.how));
      });
      if (reason != exempt().end()) {
        ++exempted;
        used.insert(static_cast<std::size_t>(reason - exempt().begin()));
      } else {
        ++missed[what + " (" + run.name + ")"];
      }
    }
  }
  std::cout << fmt::format("forger: {} runs, {} changes, {} found, {} promise nothing, {} missed\n",
                           chosen.size(), changes, found, exempted, missed.size());
  for (const auto& [what, times] : missed) ADD_FAILURE() << what << ": not found, " << times;
  if (is_all()) {
    for (std::size_t i = 0; i < exempt().size(); ++i)
      EXPECT_TRUE(used.contains(i) || std::string(exempt()[i].reason).ends_with(", by chance"))
          << exempt()[i].file << " " << exempt()[i].field
          << ": every change is found, and need not be exempt";
  }
}

}  // namespace
}  // namespace cudp
