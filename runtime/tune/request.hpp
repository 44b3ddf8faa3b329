#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "privacy/stopping.hpp"
#include "runtime/sweep/request.hpp"

namespace cudp {

/// Flags of `cudp tune` that concern the tuning as a whole (number of trainings, score, folder,
/// ...) and are not settings of its trainings.
struct TuneFlags {
  std::string file;    ///< TOML file with settings, lists of values, and these flags
  double runs = 10.0;  ///< expected number of trainings, E[K]
  double eta = 0.0;    ///< form of the distribution of that number (privacy/stopping.hpp)
  /// Maximum number of trainings. 0: a number so large that it is reached with negligible
  /// probability.
  std::int64_t most_runs = 0;
  std::string score;      ///< public, holdout, or "" to choose
  std::int64_t jobs = 0;  ///< maximum number of trainings at a time; 0 to choose
  bool dry_run = false;   ///< print the plan, train nothing
  /// Difference in accuracy that is expected between two candidates (combinations of settings); the
  /// noise of their scores should be smaller. Used only for the advice that a dry run prints. The
  /// default is an assumption, not a measurement.
  double expected_spread = 0.02;
  std::string out;              ///< folder of the tuned run
  std::string resume;           ///< folder of a tuned run that is continued
  std::string resume_or_start;  ///< folder of a tuned run that is continued if it exists
};

/// Returns the options of `cudp tune` that concern the tuning as a whole, one for each member of
/// TuneFlags.
const std::vector<Option>& tune_options();

/// A tuning as the user describes it: for each setting of `cudp train` one value or a list of
/// values to try (the grid), and the flags of the tuning itself.
struct TuneRequest {
  SettingLists lists;
  TuneFlags flags;
};

/// Adds the settings of a TOML file to those of the command line, which take priority. given: flags
/// of the tuning itself that the command line sets. source: name of the file, for messages. Throws
/// InputError if the file is not valid or has an unknown key.
void add_tune_file(std::string_view toml, const std::string& source, const Settings& given,
                   TuneRequest& request);

/// Returns the settings and flags on which the result of a tuning depends as TOML text that
/// add_tune_file() reads.
std::string tune_text(const TuneRequest& request);

/// The rows on which the trainings of a tuning are scored, to choose the best one.
enum class ScoreRows {
  public_rows,  ///< test rows that are public: the score costs nothing
  held_out      ///< private rows, held out by secret random draws: the score is released with noise
};

/// Fraction of the rows that a tuning holds out of the training data, to score candidates on them,
/// if the user does not set one.
inline constexpr double kTuneHoldout = 0.2;
/// Privacy parameter delta of a whole tuning if the user does not set one.
inline constexpr double kTuneDelta = 1e-6;

/// Complete settings of a tuning: for each setting one value, or a list of values in which the
/// candidates differ; the budget; and the rows on which candidates are scored.
struct TuneSettings {
  SettingLists lists;  ///< without the candidates' budgets, which the tuning itself sets
  double epsilon = 0.0, delta = 0.0;  ///< budget of the whole tuning
  ScoreRows score = ScoreRows::public_rows;
  std::vector<std::string> notes = {};  ///< lines for the user
};

/// Returns the settings of a tuning, with default values for what the user left open: the budget,
/// the rows on which candidates are scored, the fraction of rows that is held out. Reads no data.
/// Throws InputError if a setting is not allowed in a tuning, or has several values although it
/// must be the same for all candidates.
TuneSettings tune_settings(const TuneRequest& request);

/// Returns the candidates of a tuning: all combinations of the listed values, each as the settings
/// of a training with the budget (epsilon, delta). notes: receives messages for the user. Throws
/// InputError if the settings of a candidate are not valid.
std::vector<SweepCell> candidates_of(const TuneSettings& settings, double epsilon, double delta,
                                     std::vector<std::string>& notes);

/// For a tuning for which the user gave no setting several values: adds default lists of values to
/// `settings`, for instance 0.5, 1 and 2 times the learning rate and the clipping norm. base:
/// config of a training with the user's settings. is_table: whether the data are a table. Throws
/// InputError if the training method has no default lists.
void add_default_grid(const TrainConfig& base, bool is_table, TuneSettings& settings);

/// Returns whether at least one setting in the lists has several values.
bool has_grid(const SettingLists& lists);

}  // namespace cudp
