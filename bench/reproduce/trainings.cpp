#include "bench/reproduce/trainings.hpp"

#include <algorithm>
#include <sstream>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/settings/table_defaults.hpp"
#include "runtime/training/training.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// Interrupts a training on a signal.
class Interruptible final : public TrainingObserver {
 public:
  bool interrupts() override { return watch_.requested(); }

 private:
  InterruptWatch watch_;
};

/// Returns the settings that differ from the defaults, for the log of results.
Json chosen(const TrainConfig& config) {
  Json j;
  const TrainConfig usual;
  for (const Option& option : train_options()) {
    const auto value = option.get(config);
    if (option.scope != Scope::experiment || option.key == "data-dir" || value == option.get(usual))
      continue;
    if (value) j[option.key] = Json::parse(value_text(*value));
  }
  return j;
}

TrainConfig resolved(const std::string& settings, std::uint64_t seed,
                     const ReproduceOptions& options) {
  Settings flags = parse_settings(settings, "settings of a table");
  for (auto& [key, setting] : parse_settings(options.overrides, "overrides"))
    flags.insert_or_assign(key, std::move(setting));
  const auto set = [&flags](const char* key, Value value) {
    flags[key] = {std::move(value), "a table"};
  };
  set("data-dir", options.data_dir);
  set("threads", std::int64_t{options.threads});
  set("seed", static_cast<std::int64_t>(seed));
  if (!flags.contains("eval-every")) set("eval-every", std::int64_t{0});
  std::vector<std::string> notes;
  TrainConfig config = resolve_config(flags, notes);
  config.of<LeftOpen>().keys.clear();  // no defaults for tables: a paper states its settings
  return config;
}

std::string digest_of(TrainConfig config) {
  config.data_dir.clear();
  return fmt::format("{:016x}", checksum(write_config(config, Audience::release) +
                                         fmt::format("{}", config.eval_every)));
}

Json result_line(const std::string& what, const std::string& digest, const TrainConfig& config,
                 const Trained& t) {
  return {{"what", what},         {"seed", *config.seed},
          {"last", t.last},       {"best", t.best},
          {"epsilon", t.epsilon}, {"sigma", t.sigma},
          {"seconds", t.seconds}, {"settings", chosen(config)},
          {"digest", digest},     {"commit", build_info().commit}};
}

}  // namespace

Trainings::Trainings(const ReproduceOptions& options, Reporter& reporter)
    : options_(options), reporter_(reporter) {
  if (options.results_file.empty() || !fs::exists(options.results_file)) return;
  std::istringstream lines(read_file(options.results_file));
  for (std::string line; std::getline(lines, line);) {
    const Json j = Json::parse(line, nullptr, false);
    if (!j.is_object() || !j.contains("digest")) continue;  // truncated by a crash
    finished_[j["digest"]] = {j["last"], j["best"], j["epsilon"], j["sigma"], j["seconds"]};
  }
}

std::string Trainings::effort() const {
  return fmt::format("{} trainings, {} in all", count_, duration_text(seconds_));
}

Trained Trainings::run(const std::string& what, const std::string& settings, std::uint64_t seed) {
  const Trained t = finished_or_trained(what, settings, seed);
  ++count_;
  seconds_ += t.seconds;
  return t;
}

Trained Trainings::finished_or_trained(const std::string& what, const std::string& settings,
                                       std::uint64_t seed) {
  TrainConfig config = resolved(settings, seed, options_);
  const std::string digest = digest_of(config);
  const auto found = finished_.find(digest);
  if (found != finished_.end()) return found->second;

  Reporter quiet(true);
  if (std::string key = loading_key(config); key.empty() || key != loaded_key_) {
    loaded_ = key.empty() ? nullptr : load_for_trainings(config, quiet);
    loaded_key_ = std::move(key);
  }
  config.of<DataInUse>() = {.loaded = loaded_, .takes = false};
  Interruptible observer;
  const auto training = Training::begin(
      prepare(config, quiet), key_from_seed(static_cast<std::uint64_t>(*config.seed)), observer);
  training->advance();
  if (!training->is_finished())
    throw Error(what + ": interrupted" +
                (options_.results_file.empty()
                     ? std::string("; nothing is kept without --out")
                     : "; what is finished is in " + options_.results_file.string() +
                           ", the same command goes on from there"));
  const std::vector<MetricsRow>& rows = training->metrics();
  const Method& method = training->method();
  Trained t{.last = 100.0 * rows.back().test.accuracy().value(),
            .epsilon = method.promise(training->ledger(), training->step()).epsilon,
            .sigma = method.outcome(training->step()).sigma.value(),
            .seconds = training->seconds()};
  for (const MetricsRow& m : rows)
    t.best = std::max(t.best, 100.0 * m.test.accuracy().value_or(0.0));
  if (!options_.results_file.empty())
    append_line(options_.results_file, result_line(what, digest, config, t).dump());
  finished_[digest] = t;
  reporter_.info(
      fmt::format("{}, seed {}: {:.2f} % ({})", what, seed, t.last, duration_text(t.seconds)));
  return t;
}

ResultRow row_of(const std::string& name, const std::vector<std::vector<double>>& runs_by_column) {
  ResultRow row{.name = name, .values = {}, .deviations = {}};
  for (const std::vector<double>& runs : runs_by_column) {
    const MeanAndDeviation m = mean_and_deviation(runs);
    row.values.push_back(m.mean);
    row.deviations.push_back(m.deviation);
    row.runs = static_cast<int>(runs.size());
  }
  return row;
}

}  // namespace cudp
