#include "runtime/tune/tune.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "privacy/verify/stated_numbers.hpp"
#include "runtime/base/derived_key.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/config/report_options.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/gate/privacy_budget.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/methods/training_size.hpp"
#include "runtime/run/key_file.hpp"
#include "runtime/run/run.hpp"
#include "runtime/training/prepare.hpp"
#include "runtime/tune/certify.hpp"
#include "runtime/tune/identity.hpp"
#include "runtime/tune/publish.hpp"
#include "runtime/tune/score.hpp"
#include "runtime/tune/timing.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using TuneJson = nlohmann::ordered_json;

/// Names of the files in the tuning's private folder: the request, the plan, the random key, and
/// the scores.
constexpr const char* kSettings = "tune.toml";
constexpr const char* kPlan = "tuning.json";
constexpr const char* kKey = "tuning-key";
constexpr const char* kScores = "scores.json";
/// Numbers from which the keys of a tuning are derived (derived_key()), together with the tuning's
/// key: 0 for the draw of the number of trainings, 1, 2, ... for the trainings, kSplitKey for the
/// choice of held-out rows, kCount for the noise on the number of examples.
constexpr std::uint64_t kSplitKey = std::uint64_t{1} << 63;
constexpr std::uint64_t kCount = kSplitKey + 1;
/// Settings that have no effect on the time of a step. Candidates that differ only in these
/// settings are timed together.
constexpr std::string_view kNoTime[] = {"lr",           "clip",     "epochs",       "steps",
                                        "momentum",     "beta1",    "beta2",        "weight-decay",
                                        "schedule",     "final-lr", "warmup",       "decay-every",
                                        "decay-factor", "ema",      "class-weights"};
/// Time for which one candidate's training is run to measure its speed [seconds].
constexpr double kTimedSeconds = 0.2;
/// Maximum number of candidates whose speed is measured. Candidates that differ only in settings
/// without effect on the time of a step (kNoTime) are measured together.
constexpr std::size_t kMaxTimed = 16;
/// Name of the field in tuning.json with the noisy number of examples.
constexpr const char* kNoisySize = "noisy_size";
/// Name of the field in tuning.json with the TuningIdentity, the properties that must not change
/// when the tuning is resumed.
constexpr const char* kIdentity = "began_with";
/// Name of the field in tuning.json with the number of its format, which tunings of earlier
/// versions lack. These computed other codes of rows.
constexpr const char* kFormat = "format";
constexpr int kThisFormat = 2;

privacy::StoppingLaw law_of(const TuneFlags& flags) {
  try {
    return privacy::stopping_law(flags.eta, flags.runs,
                                 static_cast<std::uint64_t>(flags.most_runs));
  } catch (const std::logic_error& e) {
    throw InputError(fmt::format("--runs {}: {}", privacy::number(flags.runs), e.what()));
  } catch (const std::runtime_error& e) {
    throw InputError(fmt::format("--runs {}: {}", privacy::number(flags.runs), e.what()));
  }
}

/// Returns the plan as JSON, the content of tuning.json. A candidate's budget is 0 until it is
/// known.
TuneJson to_json(const TunePlan& plan) {
  TuneJson json{{"epsilon", plan.epsilon},
                {"delta", plan.delta},
                {"charged_epsilon", plan.budget.whole.epsilon},
                {"charged_delta", plan.budget.whole.delta}};
  if (plan.budget.epsilon > 0.0)
    json.update(
        {{"candidate_epsilon", plan.budget.epsilon}, {"candidate_delta", plan.budget.delta}});
  return json;
}

/// Returns the budget of a candidate, and the charge for the whole tuning, from the JSON of
/// to_json().
privacy::SelectionBudget budget_of(const TuneJson& json) {
  return {.epsilon = json.value("candidate_epsilon", 0.0),
          .delta = json.value("candidate_delta", 0.0),
          .whole = {.epsilon = json["charged_epsilon"], .delta = json["charged_delta"]}};
}

constexpr const char* kRunsNotice =
    "NOT FOR RELEASE. These are the trainings of a tuning, whose guarantee holds if the best one\n"
    "alone is published: the folder release/ beside private/. No certificate here counts that the\n"
    "others exist.\n";

}  // namespace

Tune::Tune(TuneRequest request, Reporter& reporter)
    : request_(std::move(request)), reporter_(reporter) {
  const TuneFlags& flags = request_.flags;
  const std::string named = !flags.resume.empty()            ? flags.resume
                            : !flags.resume_or_start.empty() ? flags.resume_or_start
                                                             : flags.out;
  if (!named.empty()) {
    folder_ = fs::absolute(named).lexically_normal();
    if (!folder_.has_filename()) folder_ = folder_.parent_path();
    std::error_code none;
    stored_ = fs::exists(owner(kSettings), none);
    if (!stored_) check_free(named);
    if (stored_ && read_file(owner(kSettings)) != tune_text(request_))
      throw InputError("--out " + folder_.string() +
                       ": expected the settings of the tuning in it, which " +
                       owner(kSettings).string() + " has, found others");
  }
  plan_.law = law_of(flags);
  settings_ = tune_settings(request_);
  plan_.epsilon = settings_.epsilon;
  plan_.delta = settings_.delta;
}

bool Tune::is_finished() const {
  std::error_code none;
  return stored_ && fs::exists(RunFolder(folder_).result(), none);
}

void Tune::open_finished() {
  const TuneJson json = TuneJson::parse(read_file(owner(kPlan)), nullptr, false);
  if (!json.is_object() || !json.contains("candidate_epsilon"))
    throw Error(owner(kPlan).string() + ": expected the plan of the tuning, found a damaged file");
  plan_.budget = budget_of(json);
  erase_key(owner(kKey));
}

RunFolder Tune::run_folder(std::size_t run) const {
  return RunFolder(owner("runs") / fmt::format("{:06}", run + 1));
}

std::string Tune::metric() const {
  const TrainConfig& config = candidates_.front().config;
  if (const std::string& typed = config.of<ReportOptions>().metric; !typed.empty()) return typed;
  return facts_.schema.empty() ? std::string() : parse_schema(facts_.schema, "schema").metric;
}

TrainConfig Tune::with_keys(TrainConfig config) const {
  if (config.holdout) config.of<KeysInUse>().split_key = derived_key(key_->key(), kSplitKey).key;
  config.of<KeysInUse>().count = count_;
  return config;
}

std::shared_ptr<LoadedData> Tune::data() const {
  return data_.of(with_keys(candidates_.front().config));
}

void Tune::load_stored() {
  const TuneJson json = TuneJson::parse(read_file(owner(kPlan)), nullptr, false);
  key_ = read_key(owner(kKey));
  if (!key_ || !json.is_object() || !json.contains("data"))
    throw BudgetError(folder_.string() +
                      ": expected the key and the plan of the tuning, found none or damaged ones; "
                      "all of its budget counts as spent");
  data_tag_ = json["data"];
  is_earlier_ = json.value(kFormat, 1) != kThisFormat;
  plan_.budget = budget_of(json);
  if (json.contains(kNoisySize)) stored_count_ = json[kNoisySize];
}

void Tune::check_same_tuning() const {
  const TuneJson json = TuneJson::parse(read_file(owner(kPlan)));
  const auto refuse = [&](const std::string& what, const std::string& then,
                          const std::string& now) {
    throw InputError(fmt::format(
        "{}: expected {} that the tuning began with{}, found {}; a tuning with other settings "
        "needs another folder, and is paid for by itself",
        folder_.string(), what, then, now));
  };
  const auto check_number = [&](const char* key, double now) {
    const double then = json.value(key, 0.0);
    if (then != now)
      refuse(fmt::format("the {}", key), ", " + privacy::number(then), privacy::number(now));
  };
  check_number("epsilon", plan_.epsilon);
  check_number("delta", plan_.delta);
  const TuneJson began = json.value(kIdentity, TuneJson::object());
  for (const auto& [name, now] : identity_) {
    if (began.value(name, "") == now) continue;
    if (name == "candidates")
      refuse("the settings of all candidates, those of files and presets included,", "", "others");
    refuse("the " + name, "", "another");
  }
}

bool Tune::counts_once() const {
  const auto data = this->data();
  return data != nullptr && !data->data.size_is_public &&
         std::ranges::none_of(candidates_, [](const SweepCell& cell) {
           return method_entry(cell.config.method).counts_in_its_proof;
         });
}

void Tune::prepare() {
  if (stored_)
    load_stored();
  else
    key_ = settings_.lists.contains("seed")
               ? SharedKey(key_from_seed(static_cast<std::uint64_t>(
                     std::get<std::int64_t>(settings_.lists.at("seed").front().value))))
               : SharedKey(make_key());
  std::vector<std::string> notes;
  candidates_ = candidates_of(settings_, settings_.epsilon, settings_.delta, notes);
  for (const SweepCell& cell : candidates_) data_.load(with_keys(cell.config), reporter_);
  facts_ = data_.facts(with_keys(candidates_.front().config));
  const auto data = this->data();
  if (!has_grid(settings_.lists)) {
    add_default_grid(candidates_.front().config, data != nullptr && data->data.train.is_coded(),
                     settings_);
    candidates_ = candidates_of(settings_, settings_.epsilon, settings_.delta, notes);
  }
  identity_ = identity_of(candidates_, facts_);
  if (stored_) check_same_tuning();
  if (counts_once()) {
    try {
      count_ = CountInUse{
          .budget = privacy::split_for_count(plan_.epsilon, plan_.delta, facts_.unit_rows),
          .key = derived_key(key_->key(), kCount).key,
          .value = {}};
    } catch (const std::logic_error& e) {
      throw BudgetError(std::string("the number of training examples is private, and ") + e.what());
    }
    plan_.budget.whole = {.epsilon = plan_.epsilon, .delta = plan_.delta};
  } else if (stored_) {
    candidates_ = candidates_with(plan_.budget);
  } else {
    calibrate();
  }
  // Shows the notes on the tuning only. plan_candidates() shows none, because notes on single
  // trainings would be shown for trainings that are not released.
  for (const std::string& note : settings_.notes) reporter_.info(note);
  // If the number of examples has not been released yet, this call checks that a plan is possible
  // for some number.
  const std::string tag = plan_candidates();
  if (stored_ && tag != data_tag_ && is_earlier_)
    throw InputError(
        folder_.string() +
        ": expected a tuning of this version of cudp, found one of an earlier version, which "
        "computes other codes of rows, and which alone can continue it (cudp tune --resume); "
        "another tuning (cudp tune --out DIR) is paid for by itself");
  if (stored_ && tag != data_tag_)
    throw InputError(folder_.string() +
                     ": expected the data that the tuning began with, found others");
  data_tag_ = tag;
  // If an earlier process ended after the release of the number of examples, but before the plan
  // was written, run() makes the plan.
  if (!count_ || !stored_count_ || plan_.budget.epsilon == 0.0) return;
  count_->value = stored_count_;
  candidates_ = candidates_with(plan_.budget);
  (void)plan_candidates();
}

void Tune::plan_with_count(double examples) {
  count_->value = examples;
  calibrate();
}

void Tune::release_count() {
  // The charge for this release is in the tuning's folder already (make_folder()).
  PrivacyBudget budget(ledger_of_size(count_->budget.sigma, count_->budget),
                       [](const privacy::Ledger&) {});
  Gate gate(candidates_.front().config.rng, count_->key, budget);
  const double examples = training_size(data()->data, count_->budget.sigma, gate).value;
  // The number is on disk before it is shown. A resumed tuning uses the stored number and does not
  // release it again.
  stored_count_ = examples;
  write_plan(RunFolder(folder_));
  reporter_.info(fmt::format("a noisy row count, {:.0f} +- {:.2g}, was released for all trainings",
                             examples, count_->budget.sigma));
}

void Tune::plan_with_released_count() {
  try {
    plan_with_count(*stored_count_);
  } catch (const BudgetError& e) {
    throw BudgetError(std::string(e.what()) +
                      "; the noisy row count was released, so that the whole budget of the tuning "
                      "is spent");
  }
  write_plan(RunFolder(folder_));
}

std::vector<SweepCell> Tune::candidates_with(const privacy::SelectionBudget& budget) const {
  std::vector<std::string> notes;
  // A candidate's budget includes the part for the noisy number of examples, which is released once
  // for all candidates.
  return candidates_of(settings_, budget.epsilon + (count_ ? count_->budget.count_epsilon : 0.0),
                       budget.delta + (count_ ? count_->budget.count_delta : 0.0), notes);
}

void Tune::calibrate() {
  // calibrate_selection() tries several budgets. If one is too small for a candidate, `plan`
  // returns an empty list; the error is thrown only if no budget fits.
  std::optional<BudgetError> too_small;
  const auto plan = [&](double epsilon, double delta) -> std::vector<privacy::RunSpending> {
    candidates_ = candidates_with({.epsilon = epsilon, .delta = delta, .whole = {}});
    try {
      (void)plan_candidates();
    } catch (const BudgetError& e) {
      too_small = e;
      return {};
    }
    privacy::Certificate::Tuning tuning;
    tuning.parts = parts_of_selection(spendings_, settings_.score, epsilon, delta);
    return tuning.run().candidates;
  };
  try {
    if (count_) {
      plan_.budget =
          privacy::calibrate_selection(plan_.law, count_->budget.training_epsilon,
                                       count_->budget.training_delta, plan, facts_.unit_rows);
      plan_.budget.whole = {.epsilon = plan_.epsilon, .delta = plan_.delta};
    } else {
      plan_.budget = privacy::calibrate_selection(plan_.law, plan_.epsilon, plan_.delta, plan,
                                                  facts_.unit_rows);
    }
  } catch (const std::domain_error& e) {
    throw too_small.value_or(BudgetError(e.what()));
  } catch (const std::invalid_argument& e) {
    throw BudgetError(e.what());
  }
  candidates_ = candidates_with(plan_.budget);
  (void)plan_candidates();
}

std::string Tune::plan_candidates() {
  Reporter silent(Reporter::Silent{});
  std::vector<TrainConfig> configs;
  configs.reserve(candidates_.size());
  for (const SweepCell& cell : candidates_) configs.push_back(with_keys(cell.config));
  configs.front().of<KeysInUse>().key = key_;
  spendings_ = data_.plan(configs, silent);
  return spendings_.front().data_tag;
}

std::optional<std::size_t> Tune::public_test_rows() const {
  const auto data = this->data();
  if (settings_.score == ScoreRows::held_out || data == nullptr) return std::nullopt;
  return data->data.test.whole_size();
}

int Tune::trainings_at_a_time() const {
  std::vector<TrainConfig> configs;
  configs.reserve(candidates_.size());
  for (const SweepCell& cell : candidates_) configs.push_back(cell.config);
  // Does not depend on the number of trainings: that is secret, and must not affect anything that
  // can be observed.
  return trainings_at_once(configs, request_.flags.jobs);
}

std::optional<double> Tune::expected_seconds() const {
  const auto data = this->data();
  if (data == nullptr || !(count_ || data->data.size_is_public)) return std::nullopt;
  const double examples =
      count_ ? count_->value.value_or(0.0) : static_cast<double>(data->data.train.whole_size());
  if (examples < 1.0) return std::nullopt;
  const int at_once = trainings_at_a_time();
  std::map<std::string, TrainingTime> known;  // key: the settings that affect the time
  double mean = 0.0;
  bool on_device = false;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const SweepCell& cell = candidates_[i];
    std::uint64_t steps = 0;
    if (const std::string& plan = spendings_[i].certificate; !plan.empty())
      steps = verify::read_stated_numbers(plan).steps_planned;
    if (steps == 0) return std::nullopt;
    std::string key;
    for (const auto& [name, value] : cell.varied)
      if (std::ranges::find(kNoTime, name) == std::end(kNoTime))
        key += fmt::format("{} {}\n", name, value);
    if (!known.contains(key)) {
      if (known.size() == kMaxTimed) return std::nullopt;
      TrainConfig config = data_.with_shared_data(with_keys(cell.config), false);
      if (config.threads == 0) config.threads = std::max(1, available_cores() / at_once);
      const auto time = measured_time(std::move(config), data->data, examples, kTimedSeconds);
      if (!time) return std::nullopt;
      known[key] = *time;
    }
    on_device = on_device || may_use_cuda(cell.config);
    mean += (known[key].start + known[key].step * static_cast<double>(steps)) /
            static_cast<double>(candidates_.size());
  }
  const double trainings = privacy::Stopping(plan_.law).mean();
  return mean * trainings / (on_device ? 1.0 : std::fmin(at_once, trainings));
}

void Tune::make_folder() {
  if (stored_) return;
  const FilesInChange lock;
  std::optional<NewRunFolder> made;
  if (folder_.empty())
    made.emplace(reserve_run_folder("tune"));
  else
    made.emplace(folder_);
  const RunFolder folder = made->folder();
  write_atomically(folder.owner(kSettings), tune_text(request_), 0600);
  write_plan(folder);
  const TrainConfig& config = candidates_.front().config;
  write_atomically(folder.certificate(),
                   certificate_of_charge({.epsilon = plan_.epsilon,
                                          .delta = plan_.delta,
                                          .data = facts_,
                                          .rng = std::string(name_of(config.rng)),
                                          .is_seeded = config.seed.has_value()}));
  std::error_code failed;
  fs::create_directory(folder.owner("runs"), failed);
  if (failed) throw Error(folder.root().string() + ": cannot make the folder of the trainings");
  write_atomically(folder.owner("runs") / "NOT-FOR-RELEASE.txt", kRunsNotice, 0600);
  // The key is the last file: without it no training can begin, and with it the charge is on disk.
  write_key(folder.owner(kKey), key_->key());
  folder_ = fs::absolute(made->publish().root());
  stored_ = true;
}

void Tune::write_plan(const RunFolder& folder) const {
  TuneJson plan = to_json(plan_);
  if (stored_count_) plan[kNoisySize] = *stored_count_;
  plan["data"] = data_tag_;
  plan[kIdentity] = identity_;
  plan[kFormat] = is_earlier_ ? 1 : kThisFormat;
  write_atomically(folder.owner(kPlan), plan.dump(2) + "\n", 0600);
}

std::uint64_t Tune::drawn_number() const {
  return privacy::Stopping(plan_.law).draw(derived_key(key_->key(), 0).bits[0]);
}

Tune::Drawn Tune::draw(std::size_t run) const {
  DerivedKey derived = derived_key(key_->key(), run + 1);
  // The privacy bound holds for any probabilities with which candidates are drawn. So their
  // deviation from equal probabilities, at most 2^-47, need not be accounted for.
  const auto wide = static_cast<unsigned __int128>(derived.bits[0]) * candidates_.size();
  return {.candidate = static_cast<std::size_t>(wide >> 64), .key = std::move(derived.key)};
}

TrainConfig Tune::config_of(std::size_t run) const {
  const Drawn drawn = draw(run);
  TrainConfig config = data_.with_shared_data(with_keys(candidates_[drawn.candidate].config), true);
  config.of<KeysInUse>().key = drawn.key;
  config.out = run_folder(run).root().string();
  if (config.threads == 0) config.threads = std::max(1, available_cores() / at_once_);
  return config;
}

void Tune::run(std::optional<EndOnSignal>& end) {
  make_folder();
  const std::string again = "continue with: cudp tune --resume " + folder_.string();
  std::optional<FolderLock> lock(lock_of_runs(folder_ / "private", reporter_));
  reporter_.keep_log(RunFolder(folder_).log());
  if (count_ && !stored_count_) release_count();
  if (count_ && !count_->value) plan_with_released_count();
  std::vector<std::size_t> left;
  const std::uint64_t number = drawn_number();
  check_keys(number);
  for (std::size_t r = 0; r < number; ++r)
    if (!has_ended(run_folder(r))) left.push_back(r);
  at_once_ = trainings_at_a_time();
  reporter_.info("tuning, in " + folder_.string());
  const EndOfTrainings ended = train_all(
      left, at_once_,
      {.train = [this](std::size_t r,
                       const QueuedSignals& signals) { train_in_child(config_of(r), signals); },
       .is_over = [this](std::size_t r) { return has_ended(run_folder(r)); },
       .report = [](std::size_t) {}},
      end);
  if (ended.code != Exit::ok) {
    append_line(owner("errors.txt"),
                fmt::format("training {}: {}", ended.failed + 1, ended.message));
    throw Error("a training failed (private/errors.txt); " + again, ended.code);
  }
  if (ended.interrupted) throw Error("interrupted; " + again, Exit::again);
  if (!end) end.emplace("interrupted while the result was written; " + again);
  finish();
}

void Tune::check_keys(std::uint64_t number) const {
  for (std::size_t r = 0; r < number; ++r) {
    const fs::path certificate = run_folder(r).certificate();
    std::error_code none;
    if (!fs::exists(certificate, none) ||
        !verify::read_stated_numbers(read_file(certificate)).lost_a_key())
      continue;
    // The message does not name the training, because its number would be a lower bound on the
    // number of trainings, which is secret.
    throw BudgetError(folder_.string() +
                      ": expected trainings that each kept the key that the tuning drew, found one "
                      "that continued with another; all of the tuning's budget counts as spent, "
                      "and nothing is released");
  }
}

void Tune::finish() {
  const std::uint64_t number = drawn_number();
  check_keys(number);
  std::vector<std::size_t> drawn;
  TuneJson scores = TuneJson::array();
  std::size_t best = 0;
  Score best_score;
  for (std::size_t r = 0; r < number; ++r) {
    drawn.push_back(draw(r).candidate);
    const std::optional<RunResult> result = stored_result(run_folder(r));
    if (result) remove_leftovers(run_folder(r));
    const Score score = score_of(result, settings_.score, metric());
    // Among equal scores, public orders decide: first the order of the candidates in the grid, then
    // the order of the trainings.
    const bool better = r == 0 || score.rank > best_score.rank ||
                        (score.rank == best_score.rank && drawn[r] < drawn[best]);
    if (better) {
      best = r;
      best_score = score;
    }
    scores.push_back({{"training", run_folder(r).root().filename().string()},
                      {"candidate", varied_text(candidates_[drawn[r]])},
                      {"score", score.name},
                      {"value", std::isfinite(score.value) ? TuneJson(score.value) : TuneJson()}});
  }
  const RunFolder winner = run_folder(best);
  write_atomically(owner(kScores),
                   TuneJson{{"trainings", number},
                            {"released", winner.root().filename().string()},
                            {"scores", scores}}
                           .dump(2) +
                       "\n",
                   0600);
  if (!stored_result(winner))
    throw BudgetError(
        "the released training was refused after its noisy number of examples was counted; the "
        "whole budget of the tuning is spent");
  std::vector<std::string> grid;
  grid.reserve(candidates_.size());
  for (const SweepCell& cell : candidates_) grid.push_back(varied_text(cell));
  publish_tuned(winner, RunFolder(folder_),
                {.tuning = {.law = plan_.law,
                            .grid = grid,
                            .grid_checksum = {},
                            .parts = parts_of_selection(spendings_, settings_.score,
                                                        plan_.budget.epsilon, plan_.budget.delta),
                            .count = count_ ? std::optional(count_->budget) : std::nullopt},
                 .delta = plan_.budget.whole.delta,
                 .charged_epsilon = plan_.budget.whole.epsilon,
                 .settings = varied_text(candidates_[drawn[best]]),
                 .score_name = best_score.name,
                 .score = privacy::number(best_score.value)});
  erase_key(owner(kKey));
}

TuneResult Tune::result() const { return tuned_result(RunFolder(folder_)); }

}  // namespace cudp
