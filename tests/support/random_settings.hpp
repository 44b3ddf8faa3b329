#pragma once
// Random settings, generated from the table of options itself, with every kind, choice and range.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "runtime/config/option.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"

namespace cudp {

/// Random settings of a training, as words of the command line.
struct RandomSettings {
  /// Key and value; the value of a toggle is empty.
  using Flag = std::pair<std::string, std::string>;

  std::string data;  ///< "table", "units", "matrix", "texts", "images"
  std::string ending;
  std::vector<Flag> flags;
  std::vector<Flag> in_file;  ///< settings that go into the file of --config

  std::vector<std::string> arguments() const {
    std::vector<std::string> words = {"train"};
    for (const auto& [key, value] : flags) {
      words.push_back("--" + key);
      if (!value.empty()) words.push_back(value);
    }
    return words;
  }
  /// Returns the settings of in_file as TOML.
  std::string file() const {
    std::string text;
    for (const auto& [key, value] : in_file) {
      const ValueKind kind = find_option(key)->kind;
      const bool bare = kind == ValueKind::integer || kind == ValueKind::number;
      text += key + " = " + (value.empty() ? "true" : bare ? value : "\"" + value + "\"") + "\n";
    }
    return text;
  }
  std::string command() const {
    std::string text = "cudp";
    for (const std::string& word : arguments()) text += " " + word;
    std::string lines = file();
    std::ranges::replace(lines, '\n', ';');
    if (!lines.empty()) text += "  (" + std::string(kFile) + ": " + lines + ")";
    return text + "  (" + data + ", " + ending + ")";
  }
  bool has(const std::string& key, const std::string& value) const {
    const auto is_it = [&](const Flag& f) {
      return f.first == key && (f.second == value || value == "*");
    };
    return std::ranges::any_of(flags, is_it) || std::ranges::any_of(in_file, is_it);
  }

  static constexpr const char* kFile = "settings.toml";
};

/// Numbers of the levels that options can have: the name of a choice, a toggle that is on, a number
/// that is given, or "default" for an option that is not given ("optimizer=adam", "ema=given",
/// "threads=default"). The data and the ending of the run have levels, too.
class Levels {
 public:
  /// Returns the levels of some settings, ascending.
  std::vector<std::uint32_t> of(const RandomSettings& settings) {
    std::map<std::string, std::string> given(settings.flags.begin(), settings.flags.end());
    given.insert(settings.in_file.begin(), settings.in_file.end());
    std::vector<std::uint32_t> levels = {number("data=" + settings.data),
                                         number("ending=" + settings.ending)};
    for (const Option& option : train_options()) {
      const auto at = given.find(option.key);
      if (at == given.end()) {
        defaults_.insert(number(option.key + "=default"));
        levels.push_back(number(option.key + "=default"));
      } else {
        const bool named =
            !option.choices.empty() || option.key == "model" || option.key == "activation";
        levels.push_back(number(option.key + "=" + (named ? at->second : "given")));
      }
    }
    std::ranges::sort(levels);
    return levels;
  }

  /// Returns the pairs of levels of which at least one is not a default.
  std::vector<std::uint64_t> pairs_of(const RandomSettings& settings) {
    const std::vector<std::uint32_t> levels = of(settings);
    std::vector<std::uint64_t> pairs;
    for (std::size_t i = 0; i < levels.size(); ++i)
      for (std::size_t j = i + 1; j < levels.size(); ++j)
        if (!defaults_.contains(levels[i]) || !defaults_.contains(levels[j]))
          pairs.push_back(std::uint64_t{levels[i]} << 32 | levels[j]);
    return pairs;
  }

 private:
  std::uint32_t number(const std::string& level) {
    return numbers_.try_emplace(level, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::unordered_set<std::uint32_t> defaults_;
};

class SettingsMaker {
 public:
  explicit SettingsMaker(std::uint64_t seed) : random_(seed) {}

  /// Returns, of several random candidates, the settings with the most pairs of levels that were
  /// not made before: a greedy pairwise design.
  RandomSettings next() {
    RandomSettings best;
    std::vector<std::uint64_t> pairs_of_best;
    std::size_t most = 0;
    for (int candidate = 0; candidate < kCandidates; ++candidate) {
      RandomSettings settings = make();
      std::vector<std::uint64_t> pairs = levels_.pairs_of(settings);
      seen_.insert(pairs.begin(), pairs.end());
      const auto fresh = static_cast<std::size_t>(
          std::ranges::count_if(pairs, [&](std::uint64_t p) { return !made_.contains(p); }));
      if (candidate > 0 && fresh <= most) continue;
      best = std::move(settings);
      pairs_of_best = std::move(pairs);
      most = fresh;
    }
    made_.insert(pairs_of_best.begin(), pairs_of_best.end());
    return best;
  }

  /// Returns random settings, without that preference.
  RandomSettings any() { return make(); }

  std::vector<std::uint64_t> pairs_of(const RandomSettings& settings) {
    return levels_.pairs_of(settings);
  }
  /// Number of pairs of levels in the returned settings.
  std::size_t made() const { return made_.size(); }
  /// Number of pairs of levels in all candidates.
  std::size_t seen() const { return seen_.size(); }

 private:
  static constexpr int kCandidates = 12;
  /// Returns the options that are not drawn: those that the test itself sets, that need other
  /// files, or that apply to a single call.
  static const std::set<std::string>& own() {
    static const std::set<std::string> keys = {
        "dataset",       "data-dir",       "schema",        "test-data",       "out",
        "ranks",         "rank-timeout",   "sum-by",        "share-device",    "resume-or-start",
        "resume",        "fresh-noise",    "seed",          "config",          "preset",
        "json",          "quiet",          "method",        "model",           "epsilon",
        "sigma",         "delta",          "batch",         "steps",           "epochs",
        "feature-cache", "device",         "evaluate-with", "features",        "classes",
        "embedding",     "embedding-dims", "compare-with",  "labels",          "test-labels",
        "input-shape",   "channels-last",  "arrays",        "test-arrays",     "target-bounds",
        "loss",          "huber-delta",    "holdout",       "holdout-epsilon", "holdout-threshold",
        "holdout-delta", "metric",         "init",          "freeze",          "rows-in",
        "log-json"};
    return keys;
  }

  bool chance(double p) { return std::uniform_real_distribution<>()(random_) < p; }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }

  RandomSettings make() {
    RandomSettings s;
    const MethodEntry& method = one_of(methods());
    s.data = method.linear_model ? one_of<std::string>({"table", "table", "units", "matrix"})
                                 : one_of<std::string>({"table", "table", "units", "matrix",
                                                        "texts", "texts", "images", "images"});
    s.ending = one_of<std::string>({"finished", "finished", "interrupted", "killed", "fresh noise",
                                    "killed in the fresh noise"});
    add(s, "method", method.name);
    add_data(s, s.data == "table" && !method.linear_model && chance(0.25));
    if (s.data != "images" && method.gives_privacy && !given(s, "test-data") && chance(0.4)) {
      add(s, "holdout", one_of<std::string>({"0.2", "0.5"}));
      if (chance(0.7)) {
        add(s, "holdout-epsilon", one_of<std::string>({"1", "3"}));
        add(s, "holdout-delta", one_of<std::string>({"1e-5", "1e-3"}));
      }
    }
    add_model(s, method);
    // No chance of its own, so that what was chosen before it was known stays.
    if (given(s, "holdout-epsilon") && !s.has("dataset", "stays.csv") && !s.has("model", "svm"))
      add(s, "holdout-threshold", "0.4");
    add_budget(s, method);
    add_weights(s, method);
    for (const Option& option : train_options()) {
      if (own().contains(option.key) || !takes(method, option.key) || !chance(0.2)) continue;
      if (option.group == "Text" && s.data != "texts") continue;
      if (option.key == "size-is-public" && given(s, "holdout")) continue;
      const bool numbers = s.data == "table" || s.data == "units" || s.data == "matrix";
      if (option.key == "normalise" && !numbers) continue;
      if (option.key == "class-weights" && s.has("dataset", "stays.csv")) continue;
      if (option.key == "malformed" && s.data == "images") continue;
      if (option.key.starts_with("feature-") || option.key.starts_with("vocabulary") ||
          option.key == "embedding-tensor" || option.key == "store-embedding")
        continue;  // with what they are of
      add_value(s, option);
    }
    // An epoch of random allocation is paid for whole: a length in steps is refused. It is kept in
    // some settings.
    if (s.has("sampling", "allocation") && random_() % 4 != 0)
      for (auto& [key, value] : s.flags)
        if (key == "steps") {
          key = "epochs";
          value = "2";
        }
    if (chance(0.08)) move_to_file(s);
    return s;
  }

  static bool given(const RandomSettings& s, const std::string& key) {
    return std::ranges::any_of(s.flags, [&](const auto& f) { return f.first == key; });
  }

  /// Moves about half of the settings that a file may contain to the file.
  void move_to_file(RandomSettings& s) {
    for (std::size_t i = s.flags.size(); i-- > 0;) {
      const std::string& key = s.flags[i].first;
      const bool of_call = key == "out" || key == "json" || key == "quiet" || key == "dataset";
      if (of_call || !chance(0.5)) continue;
      s.in_file.insert(s.in_file.begin(), s.flags[i]);
      s.flags.erase(s.flags.begin() + static_cast<std::ptrdiff_t>(i));
    }
    add(s, "config", RandomSettings::kFile);
  }

  static void add(RandomSettings& s, std::string key, std::string value = "") {
    s.flags.emplace_back(std::move(key), std::move(value));
  }

  /// Adds the data. target: a table whose rows have a number to predict.
  void add_data(RandomSettings& s, bool target) {
    if (target) {
      add(s, "dataset", "stays.csv");
      if (chance(0.7)) add(s, "test-data", "stays-test.csv");
      if (chance(0.5)) {
        const std::string loss = one_of<std::string>({"squared", "huber"});
        add(s, "loss", loss);
        if (loss == "huber" && chance(0.5)) add(s, "huber-delta", "2.5");
      }
    } else if (s.data == "table") {
      add(s, "dataset", "people.csv");
      if (chance(0.2)) add(s, "schema", "people.csv.schema.toml");
      if (chance(0.7)) add(s, "test-data", "test.csv");
    } else if (s.data == "units") {
      add(s, "dataset", "visits.csv");
      if (chance(0.5)) add(s, "test-data", "test.csv");
    } else if (s.data == "matrix") {
      const bool archive = chance(0.3);
      add(s, "dataset", archive ? "people.npz" : "people.npy");
      if (!archive) add(s, "labels", "labels.npy");
      add(s, "classes", "2");
      if (chance(0.7)) {
        add(s, "test-data", "test.npy");
        add(s, "test-labels", "test-labels.npy");
      }
    } else if (s.data == "texts") {
      add(s, "dataset", "notes.csv");
      if (chance(0.7)) add(s, "test-data", "notes-test.csv");
      if (chance(0.6)) {
        const bool tensors = chance(0.3);
        add(s, "embedding", tensors ? "vectors.safetensors" : "vectors.txt");
        if (tensors) add(s, "embedding-tensor", one_of<std::string>({"a", "b"}));
        if (tensors) add(s, "vocabulary", "words.txt");
        if (chance(0.3)) add(s, "embedding-dims", std::to_string(between(1, 4)));
        if (chance(0.3)) add(s, "store-embedding");
      } else {
        add(s, "vocabulary", "words.txt");
        if (chance(0.5)) add(s, "vocabulary-is-public");
        if (chance(0.3)) add(s, "vocabulary-size", std::to_string(between(1, 8)));
      }
    } else {
      add(s, "dataset", "images");
      if (chance(0.2)) add(s, "data-dir", ".");
      if (chance(0.2)) add(s, "classes", std::to_string(between(10, 12)));
    }
  }

  void add_model(RandomSettings& s, const MethodEntry& method) {
    if (s.data == "texts") {
      add(s, "model", one_of<std::string>({"text-gru.toml", "text-lstm.toml", "text-mean.toml"}));
      return;
    }
    const std::string features = method.linear_model || !chance(0.25) ? "none"
                                 : s.data == "images" && chance(0.3)  ? "scatter"
                                                                      : "pca";
    if (features != "none") add(s, "features", features);
    if (features == "pca") {
      add(s, "feature-dimensions", std::to_string(between(1, 4)));
      if (chance(0.4)) add(s, "feature-whiten");
      add_one_of(s, "feature-share", "0.2", "feature-sigma", "30");
    }
    if (features == "scatter") {
      if (chance(0.5)) {
        add(s, "feature-standardise");
        add_one_of(s, "feature-share", "0.1", "feature-sigma", "50");
        if (chance(0.4)) add(s, "feature-second-order", "0.5");
      } else if (chance(0.5)) {
        add(s, "feature-groups", "9");
      }
      add(s, "feature-cache", "none");
      add(s, "model", one_of<std::string>({"scatter-linear", "logistic"}));
    } else if (method.linear_model) {
      if (chance(0.7)) add(s, "model", one_of<std::string>({"logistic", "svm"}));
    } else if (s.data == "images" && features == "none") {
      add(s, "model", one_of<std::string>({"image.toml", "logistic", "mlp"}));
    } else {
      const bool target = s.has("dataset", "stays.csv");
      add(s, "model", one_of<std::string>({target ? "linear" : "logistic", "mlp", "table.toml"}));
    }
  }
  /// Adds one of two options, or neither.
  void add_one_of(RandomSettings& s, const char* a, const char* of_a, const char* b,
                  const char* of_b) {
    if (chance(0.5)) return;
    if (chance(0.5))
      add(s, a, of_a);
    else
      add(s, b, of_b);
  }

  /// Adds public weights to start from, and layers to freeze. What is added follows from the run's
  /// seed, so that the other settings stay what they were.
  static void add_weights(RandomSettings& s, const MethodEntry& method) {
    const auto seed = std::ranges::find(s.flags, "seed", &RandomSettings::Flag::first);
    const unsigned long dice = std::stoul(seed->second);
    if (!takes(method, "init") || dice % 4 != 0) return;
    struct Start {
      const char* model;
      const char* file;
      std::vector<const char*> freeze;
    };
    static const std::vector<Start> all = {
        {"table.toml", "start-table.safetensors", {"fc1*", "fc2"}},
        {"mlp", "start-mlp.safetensors", {"fc1", "fc2.*"}},
        {"image.toml", "start-image.safetensors", {"conv*,norm1", "norm1", "fc", "conv1"}},
        {"text-gru.toml", "start-notes.safetensors", {"gru*"}},
        {"text-lstm.toml", "start-notes.safetensors", {"lstm"}},
    };
    for (const Start& start : all) {
      if (!s.has("model", start.model)) continue;
      add(s, "init", start.file);
      if (dice % 5 != 0) add(s, "freeze", start.freeze[dice / 4 % start.freeze.size()]);
    }
  }

  void add_budget(RandomSettings& s, const MethodEntry& method) {
    if (method.gives_privacy) {
      if (takes(method, "sigma") && chance(0.25))
        add(s, "sigma", one_of<std::string>({"0.7", "1", "2.5"}));
      else
        add(s, "epsilon", one_of<std::string>({"0.5", "2", "3", "8"}));
      add(s, "delta", one_of<std::string>({"1e-5", "1e-3"}));
    }
    if (takes(method, "batch")) add(s, "batch", std::to_string(between(4, 60)));
    if (takes(method, "steps")) {
      if (chance(0.85))
        add(s, "steps", std::to_string(between(1, 9)));
      else
        add(s, "epochs", std::to_string(between(1, 2)));
    }
    add(s, "seed", std::to_string(random_() % 1000));
    // The emulator is slow.
    const bool emulated =
        (s.data == "table" || s.data == "units") && !method.cpu_only && chance(0.15);
    add(s, "device", emulated ? "cuda" : "cpu");
    add(s, "quiet");
    add(s, "json");
    add(s, "out", "run");
  }

  /// Adds a value of the option: mostly near the default, sometimes at an end of the range.
  void add_value(RandomSettings& s, const Option& option) {
    if (option.kind == ValueKind::toggle) return add(s, option.key);
    if (!option.choices.empty()) return add(s, option.key, one_of(option.choices));
    if (option.key == "activation")
      return add(s, option.key, one_of<std::string>({"relu", "tanh", "tempered-sigmoid"}));
    if (option.key == "class-weights") return add(s, option.key, weights(s.data));
    if (!option.range) return;  // other texts name files
    const ValueRange& range = *option.range;
    const auto usual = option.get(TrainConfig{});
    double x = 1.0;
    if (usual && std::holds_alternative<double>(*usual)) x = std::get<double>(*usual);
    if (usual && std::holds_alternative<std::int64_t>(*usual))
      x = static_cast<double>(std::get<std::int64_t>(*usual));
    if (x == 0.0) x = range.high <= 1.0 ? 0.1 : 2.0;
    if (chance(0.85)) {
      x *= std::exp2(std::uniform_real_distribution<>(-2.0, 2.0)(random_));
      if (range.high <= 1.0) x = std::min(x, 0.95);
    } else if (option.kind == ValueKind::number) {
      x = chance(0.5) ? range.low : range.high;
    }
    if (option.kind == ValueKind::integer) x = std::fmin(std::round(x), 64.0);
    x = std::clamp(x, range.low, range.high);
    if (!range.contains(x)) x = 0.5 * (range.low + range.high);
    add(s, option.key,
        option.kind == ValueKind::integer ? std::to_string(static_cast<std::int64_t>(x))
                                          : fmt::format("{:.6g}", x));
  }

  /// Returns class weights: mostly one for each class; sometimes too few, all 0, or negative ones.
  std::string weights(const std::string& data) {
    std::string text = chance(0.03) ? "-1" : one_of<std::string>({"1", "0", "0.03", "20"});
    for (int k = chance(0.97) ? (data == "images" ? 9 : 1) : 0; k > 0; --k)
      text += "," + one_of<std::string>({"1", "0", "5", "33", "0.25", "1e-9"});
    return text;
  }

  std::mt19937_64 random_;
  Levels levels_;
  std::unordered_set<std::uint64_t> made_;
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace cudp
