#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "privacy/selection.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/results/result.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/sweep/trainings.hpp"
#include "runtime/tune/identity.hpp"
#include "runtime/tune/request.hpp"

namespace cudp {

/// Plan of a tuning: the distribution of the number of trainings, and the privacy budgets. It
/// depends on public settings only.
struct TunePlan {
  privacy::StoppingLaw law;
  /// Privacy budget of each single training, and the guarantee of the whole tuning that follows
  /// from it.
  privacy::SelectionBudget budget;
  /// Budget of the whole tuning that the user set, an upper limit for the epsilon and delta that
  /// are guaranteed.
  double epsilon = 0.0, delta = 0.0;
};

/// Result of a tuning that may be published: the selected training, its settings and its score.
struct TuneResult {
  RunResult winner;
  std::string settings;  ///< the winner's values of the settings in which candidates differ
  std::string score_name;
  std::string score;  ///< released score, as text
};

/// Private hyperparameter tuning. Trains a secret, random number of times, each time with a
/// candidate (combination of settings) that is drawn at random, and releases only the training with
/// the best score; privacy/selection.hpp has the privacy bound.
///
/// All random numbers are derived from the tuning's key: the number of trainings, the candidates,
/// the key of each training, and the key that decides which rows are held out, one for all
/// trainings. So the result is a function of the key and the data, however often the tuning is
/// interrupted and however many trainings run at a time. A private number of examples is released
/// once, after the whole budget was charged and before candidates are planned. Files in the
/// tuning's folder:
///
///  release/            the files of the released training, with the guarantee of the whole tuning;
///                      before the end, only a certificate that the budget is charged
///  private/tune.toml   settings      private/tuning.json   plan and charge, before any training
///  private/tuning-key  the key, until the end
///  private/runs/       all trainings
///  private/scores.json their scores
class Tune {
 public:
  /// Reads the request and, if it names the folder of an interrupted tuning, that tuning's files.
  /// Writes nothing. Throws InputError if the request is not valid, or if the folder has a tuning
  /// with other settings.
  Tune(TuneRequest request, Reporter& reporter);

  /// Returns whether the folder has a finished tuning.
  bool is_finished() const;
  /// Reads the data, and computes the planned privacy cost of each candidate's training. Writes
  /// nothing. If a candidate's training would fail before it releases anything, throws the error
  /// with which it would fail.
  void prepare();
  const TunePlan& plan() const { return plan_; }
  const TuneSettings& settings() const { return settings_; }
  /// Returns the candidates, i.e. the combinations of settings among which the tuning chooses. Call
  /// after prepare().
  const std::vector<SweepCell>& candidates() const { return candidates_; }
  /// Returns the planned privacy cost of each candidate's training. Call after prepare().
  const std::vector<PlannedSpending>& spendings() const { return spendings_; }
  /// Returns a text that describes the unit of privacy of the data (a row, or all rows of a
  /// person). Call after prepare().
  const std::string& unit() const { return facts_.protected_unit; }
  /// Returns the number of public test rows; nullopt if candidates are scored on held-out rows.
  std::optional<std::size_t> public_test_rows() const;
  /// Returns whether the number of examples is private and released once for all trainings
  /// together. If so, the budgets of candidates depend on the released number; they are 0 before
  /// run() or plan_with_count().
  bool has_count() const { return count_.has_value(); }
  /// Plans all candidates as if `examples` had been released as the noisy number of examples, to
  /// show the plan to the user. Releases nothing. Call after prepare(), and only if has_count().
  void plan_with_count(double examples);

  /// Returns an estimate of the duration of the expected number of trainings [seconds], from
  /// measurements on random examples; nullopt if it is unknown. Reading data and evaluations are
  /// not included. Trainings that share a CUDA device count as if they ran one after the other.
  /// Call after prepare(), and plan_with_count() if has_count().
  std::optional<double> expected_seconds() const;

  /// Writes to disk that the budget of the whole tuning is spent, makes all trainings, and releases
  /// the best one. Call after prepare(). Throws Error if a training fails or a signal interrupts
  /// the tuning. Messages reveal nothing about the number of trainings, which is secret. end:
  /// handles signals until the first training starts, and is then destroyed.
  void run(std::optional<EndOnSignal>& end);

  /// Reads the plan of a finished tuning from its folder. Call it instead of prepare() and run().
  /// If a crash has left the tuning's random key there, destroys the key.
  void open_finished();
  /// Returns the result of the tuning: the released training, its settings and its score. Requires
  /// that the tuning is finished.
  TuneResult result() const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  /// What is drawn at random for one training of the tuning: the candidate that is trained, and the
  /// training's key.
  struct Drawn {
    std::size_t candidate = 0;
    SharedKey key;
  };
  std::filesystem::path owner(const char* name) const { return folder_ / "private" / name; }
  RunFolder run_folder(std::size_t run) const;
  std::string metric() const;
  /// Returns `config` with everything that all trainings of the tuning share: the random keys and,
  /// if it was released, the noisy number of examples.
  TrainConfig with_keys(TrainConfig config) const;
  /// Returns the data in memory that the trainings of all candidates share; null if they share no
  /// data.
  std::shared_ptr<LoadedData> data() const;
  /// Returns whether one noisy number of examples can be released for all trainings together. This
  /// requires that the trainings share their data, that the number is private, and that no
  /// candidate's method covers the release of the number in its own proof
  /// (MethodEntry::counts_in_its_proof).
  bool counts_once() const;
  void load_stored();
  /// Throws InputError if the interrupted tuning in the folder began with another budget, or with
  /// other settings, models or data (TuningIdentity).
  void check_same_tuning() const;
  /// Plans all candidates with the noisy number of examples that was released.
  void plan_with_released_count();
  /// Releases the number of training examples with noise, and plans all candidates with the noisy
  /// number. Requires that the cost of that release was charged.
  void release_count();
  /// Returns the candidates, each with the budget that `budget` states for a single candidate.
  std::vector<SweepCell> candidates_with(const privacy::SelectionBudget& budget) const;
  /// Computes the budget of a single candidate from the budget of the whole tuning, and plans each
  /// candidate with it.
  void calibrate();
  /// Computes the planned privacy cost of each candidate's training and stores it in spendings_.
  /// Returns a keyed hash of the data.
  std::string plan_candidates();
  void make_folder();
  void write_plan(const RunFolder& folder) const;
  std::uint64_t drawn_number() const;
  /// Returns the maximum number of trainings at a time.
  int trainings_at_a_time() const;
  Drawn draw(std::size_t run) const;
  TrainConfig config_of(std::size_t run) const;
  void finish();
  /// Throws BudgetError if one of the first `number` trainings lost its random key and continued
  /// with another one: the tuning's guarantee does not allow that, so nothing is released, and the
  /// whole budget counts as spent.
  void check_keys(std::uint64_t number) const;

  TuneRequest request_;
  Reporter& reporter_;
  TuneSettings settings_;
  TunePlan plan_;
  std::vector<SweepCell> candidates_;
  std::vector<PlannedSpending> spendings_;  ///< [candidates], planned privacy costs
  std::filesystem::path folder_;
  /// Whether the folder exists already, so that its plan and its key are used.
  bool stored_ = false;
  std::string data_tag_;
  bool is_earlier_ = false;  ///< whether an earlier version of the program began the tuning
  std::optional<SharedKey> key_;
  /// Budget and key of the one release of the number of examples, and the number with which
  /// candidates are planned: the released one, or the argument of plan_with_count(). nullopt unless
  /// has_count().
  std::optional<CountInUse> count_;
  /// Noisy number of examples that was released, as stored in tuning.json; nullopt before its
  /// release.
  std::optional<double> stored_count_;
  SharedData data_;
  DataFacts facts_;  ///< public properties of the data of all candidates
  TuningIdentity identity_;
  int at_once_ = 1;
};

}  // namespace cudp
