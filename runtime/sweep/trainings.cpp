#include "runtime/sweep/trainings.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/threads.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/data/schema_text.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/run/authenticator.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/reservation.hpp"
#include "runtime/run/run.hpp"
#include "runtime/run/stored_run.hpp"
#include "runtime/sweep/children.hpp"
#include "runtime/training/forecast_spending.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using PlanJson = nlohmann::ordered_json;

/// Default number of trainings that run at the same time on one CUDA device; measured in
/// bench/results.
constexpr int kJobsOfDevice = 8;

PlanJson to_json(const PlannedSpending& s) {
  // JSON has no infinity; null stands for it.
  return {{"epsilon", std::isfinite(s.epsilon) ? PlanJson(s.epsilon) : PlanJson()},
          {"delta", s.delta},
          {"certificate", s.certificate},
          {"data", s.data_tag}};
}

PlannedSpending from_json(const PlanJson& j) {
  return {.epsilon = j["epsilon"].is_null() ? std::numeric_limits<double>::infinity()
                                            : j["epsilon"].get<double>(),
          .delta = j["delta"],
          .certificate = j["certificate"],
          .data_tag = j["data"]};
}

/// Moves the data of a prepared training back into the memory that trainings share, when the object
/// is destroyed. The data have been converted to features, and are marked so that the next training
/// does not convert them again.
class TakesBack {
 public:
  /// loaded: null if the data are not shared.
  TakesBack(LoadedData* loaded, Experiment& e) : loaded_(loaded), e_(e) {}
  ~TakesBack() {
    if (loaded_ == nullptr) return;
    loaded_->data = std::move(e_.data);
    loaded_->has_features = true;
  }
  TakesBack(const TakesBack&) = delete;
  TakesBack& operator=(const TakesBack&) = delete;

 private:
  LoadedData* loaded_;
  Experiment& e_;
};

/// Returns the public properties of the data of a training with this config. Reads them in this
/// process, not in a child process.
DataFacts facts_here(const TrainConfig& asked, const SharedData& data) {
  Reporter silent(Reporter::Silent{});
  const std::shared_ptr<LoadedData> loaded = data.of(asked);
  Experiment e =
      prepare(data.with_shared_data(asked, true), silent, "", asked.of<KeysInUse>().split_key);
  const TakesBack back(loaded.get(), e);
  return DataFacts{.name = e.data.name,
                   .schema = e.data.schema ? schema_toml(*e.data.schema) : std::string(),
                   .unit = unit_name(e.data),
                   .unit_rows = e.data.unit_rows,
                   .protected_unit = protected_unit(e.data)};
}

/// Returns an authentication code of the test rows on which the trainings of a tuning are scored.
/// Returns "" if these are held-out rows, because the code of the whole data covers them.
std::string scored_tag_of(const Experiment& e, const RandomKey& key) {
  if (e.split_key) return "";
  const Authenticator authenticator(key);
  const Dataset& rows = e.data.test;
  return data_tag(authenticator, rows,
                  authenticator.block_tags(rows, static_cast<int>(e.config.threads)), "scored on");
}

/// Returns the planned privacy cost of each training, computed in this process, not in a child
/// process. While a training is planned, the shared data are moved to it, and back afterwards.
std::vector<PlannedSpending> plan_here(const std::vector<TrainConfig>& configs,
                                       const SharedData& data, Reporter& reporter) {
  std::vector<PlannedSpending> all;
  Reporter silent(Reporter::Silent{});
  for (const TrainConfig& asked : configs) {
    const std::shared_ptr<LoadedData> loaded = data.of(asked);
    // Reports the warnings and notes of the first training only; they stand for those of all.
    Experiment e = prepare(data.with_shared_data(asked, true), all.empty() ? reporter : silent, "",
                           asked.of<KeysInUse>().split_key);
    // Moves the data back even if an error is thrown because the budget is too small: a tuning then
    // plans again with a larger budget.
    const TakesBack back(loaded.get(), e);
    std::string tag;
    if (const auto& key = asked.of<KeysInUse>().key)
      tag = data_tag_of(e, key->key()) + scored_tag_of(e, key->key());
    const SpendingForecast f = forecast_spending(e);
    all.push_back({.epsilon = f.epsilon,
                   .delta = f.delta,
                   .certificate = f.plan ? privacy::to_text(*f.plan) : "",
                   .data_tag = std::move(tag)});
  }
  return all;
}

}  // namespace

bool may_use_cuda(const TrainConfig& config) {
  return built_with_cuda() && config.device != Device::cpu;
}

SharedData::SharedData() {
  if (privacy::used_bound_store() != nullptr) return;
  bounds_ = std::make_unique<SharedBounds>();
  privacy::use_bound_store(bounds_.get());
}

SharedData::~SharedData() {
  if (bounds_ != nullptr) privacy::use_bound_store(nullptr);
}

void SharedData::load(const TrainConfig& config, Reporter& reporter) {
  const std::string key = loading_key(config);
  if (!key.empty() && !loaded_.contains(key)) loaded_[key] = load_for_trainings(config, reporter);
}

std::shared_ptr<LoadedData> SharedData::of(const TrainConfig& config) const {
  const auto data = loaded_.find(loading_key(config));
  return data == loaded_.end() ? nullptr : data->second;
}

TrainConfig SharedData::with_shared_data(TrainConfig config, bool takes) const {
  if (std::shared_ptr<LoadedData> data = of(config); data != nullptr)
    config.of<DataInUse>() = {.loaded = std::move(data), .takes = takes};
  return config;
}

DataFacts SharedData::facts(const TrainConfig& config) const {
  if (!may_use_cuda(config)) return facts_here(config, *this);
  const auto j = PlanJson::parse(answer_of_child([&] {
    const DataFacts f = facts_here(config, *this);
    return PlanJson{{"name", f.name},
                    {"schema", f.schema},
                    {"unit", f.unit},
                    {"unit_rows", f.unit_rows},
                    {"protected_unit", f.protected_unit}}
        .dump();
  }));
  return {.name = j["name"],
          .schema = j["schema"],
          .unit = j["unit"],
          .unit_rows = j["unit_rows"],
          .protected_unit = j["protected_unit"]};
}

std::vector<PlannedSpending> SharedData::plan(const std::vector<TrainConfig>& configs,
                                              Reporter& reporter) const {
  // A process that has opened a CUDA device cannot fork others that use it.
  if (std::ranges::none_of(configs, may_use_cuda)) return plan_here(configs, *this, reporter);
  std::vector<PlannedSpending> all;
  for (const PlanJson& j : PlanJson::parse(answer_of_child([&] {
         PlanJson list = PlanJson::array();
         for (const PlannedSpending& s : plan_here(configs, *this, reporter))
           list.push_back(to_json(s));
         return list.dump();
       })))
    all.push_back(from_json(j));
  return all;
}

int trainings_at_once(const std::vector<TrainConfig>& configs, std::int64_t asked) {
  if (asked > 0) return static_cast<int>(asked);
  std::int64_t threads = 1;
  for (const TrainConfig& c : configs) threads = std::max(threads, c.threads);
  const int jobs = std::max(1, available_cores() / static_cast<int>(threads));
  return std::ranges::any_of(configs, may_use_cuda) ? std::min(jobs, kJobsOfDevice) : jobs;
}

void train_in_child(const TrainConfig& config, const QueuedSignals& signals,
                    const std::function<void(RunEvent)>& observe) {
  const EndOnSignal end("interrupted before the first step");
  signals.release();
  Reporter silent(Reporter::Silent{});
  std::unique_ptr<Run> started;
  const auto tell = [&](RunEvent event) {
    if (observe) observe(event);
  };
  if (fs::exists(config.out)) {
    // A key that the caller chose is written to the folder again, so the run never loses its key.
    if (const auto& key = config.of<KeysInUse>().key)
      write_key(RunFolder(config.out).key(), key->key());
    const Settings flags{{"resume", {config.out, "sweep"}},
                         {"threads", {std::int64_t{config.threads}, "sweep"}}};
    started = resume_run(flags, silent, nullptr, alone(), nullptr, {}, {}, config.of<DataInUse>());
    tell(RunEvent::resumes);
  } else {
    tell(RunEvent::starts);
    TrainConfig observed = config;
    observed.of<BeforeRunFolder>().call = [&] { tell(RunEvent::begins); };
    started = start_run(observed, silent);
  }
  (void)train(*started, DrawPictures::no);
}

std::string certified_status(const RunFolder& folder) {
  std::error_code none;
  if (!fs::exists(folder.certificate(), none)) return "";
  const PlanJson json = PlanJson::parse(read_file(folder.certificate()), nullptr, false);
  return json.is_object() ? json.value("status", "") : "";
}

bool has_ended(const RunFolder& folder) {
  std::error_code none;
  return fs::exists(folder.result(), none) || certified_status(folder) == "refused";
}

FolderLock lock_of_runs(const fs::path& folder, Reporter& reporter) {
  constexpr int kTries = 600;
  for (int i = 0;; ++i) {
    try {
      return FolderLock(folder);
    } catch (const Error&) {
      if (i == kTries) throw;
    }
    if (i == 0) reporter.info("waiting for the runs of another call to end");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

EndOfTrainings train_all(const std::vector<std::size_t>& numbers, int at_once,
                         const ChildWork& work, std::optional<EndOnSignal>& end) {
  EndOfTrainings ended;
  ChildProcesses children;  // queues signals, so that none is lost in between
  end.reset();
  std::size_t next = 0;
  while (true) {
    while (!ended.interrupted && ended.code == Exit::ok && next < numbers.size() &&
           children.running() < static_cast<std::size_t>(at_once)) {
      const std::size_t number = numbers[next++];
      children.start(number, [&](const QueuedSignals& signals) { work.train(number, signals); });
    }
    if (children.running() == 0) {
      // From here on `end` handles signals, including one that is in the queue already: it ends the
      // process.
      end.emplace("interrupted before the results were written; the same command writes them");
      return ended;
    }
    if (children.wait()) {
      ended.interrupted = true;
      children.interrupt();
    }
    for (const EndedChild& child : children.ended()) {
      if (child.code == Exit::again) {
        // The child was interrupted by a signal. If this process did not pass that signal on, it
        // was sent to the child directly; the other trainings are then interrupted, too.
        if (!ended.interrupted) children.interrupt();
        ended.interrupted = true;
      } else if (child.code == Exit::ok || work.is_over(child.number)) {
        work.report(child.number);
      } else if (ended.code == Exit::ok) {
        ended.code = child.code;
        ended.failed = child.number;
        ended.message = child.message;
        children.interrupt();
      }
    }
  }
}

}  // namespace cudp
