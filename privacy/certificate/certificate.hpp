#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/certificate/noisy_value.hpp"
#include "privacy/certificate/promise.hpp"
#include "privacy/count_split.hpp"
#include "privacy/selection.hpp"

namespace cudp::privacy {

/// Version of the program that wrote a certificate, and how it was built.
struct Build {
  std::string version, commit, compiler, backend;
};

/// Privacy certificate of a run, the file release/privacy.json: the (epsilon, delta) guarantee, and
/// every number that is needed to check it. Every value in it that depends on the training data was
/// released with noise and is counted in its epsilon. The trainer fills it in
/// (runtime/training/certify.hpp). Only write.cpp writes it and only read.cpp reads it.
struct Certificate {
  enum class Status {
    finished,
    not_finished,  ///< plan of a run that is still in progress, or that was interrupted
    /// The run ended because no training could be planned for the noisy number of examples.
    refused
  };
  enum class TestSet { none, public_rows, private_rows };

  /// Units of privacy (e.g. rows) that were held out from training to test the model, and the
  /// privacy of the noisy test metrics that were released from them.
  struct Holdout {
    double share = 0.0;  ///< probability with which each unit is held out
    /// (epsilon, delta) of the numbers that were computed from these units and released with noise,
    /// e.g. those from which the test accuracy is estimated; 0 if none were released.
    double epsilon = 0.0, delta = 0.0;
    double sigma = 0.0;  ///< noise multiplier of each released number
    std::uint64_t releases = 0;
    /// Probability from which the second of two classes is predicted; empty: the likelier class.
    std::optional<double> threshold = {};
  };
  /// Unit of privacy if it is not the row: all rows with the same text in a column, of which at
  /// most max_rows are used.
  struct Unit {
    std::string column;  ///< column of the table; all rows with the same text in it are a unit
    std::uint64_t max_rows = 1;  ///< maximum number of rows of a unit that are used
  };
  /// Number N of training examples, in the form in which it is public: exact, or released with
  /// noise.
  struct Size {
    double value = 0.0;      ///< N, or the noisy number that was released
    double noise_std = 0.0;  ///< 0 if N is public
    bool is_public() const { return noise_std == 0.0; }
  };
  /// Noisy statistics of the training set (means, mean squares or a covariance matrix) from which
  /// the model's input features are computed.
  struct FeatureRelease {
    double sigma = 0.0;  ///< noise multiplier
    /// Number of principal components, if a covariance matrix was released; empty if the means and
    /// mean squares of the image channels were released instead.
    std::optional<std::int64_t> dimensions;
  };

  /// File that determined a part of the model, e.g. initial weights. The guarantee protects neither
  /// the data in the file nor the data from which it was made.
  struct PublicInput {
    std::string file;    ///< name of the file, without folders
    std::string sha256;  ///< SHA-256 of the file's bytes, in hexadecimal
    /// Names of the tensors that the released model has unchanged from the file.
    std::vector<std::string> frozen;
    /// Description of the earlier training in which cudp made the file; its privacy is not counted
    /// in epsilon. "" if cudp did not make the file.
    std::string not_counted;
    bool operator==(const PublicInput&) const = default;
  };

  /// Selection of this training as the best of a random number K of trainings (selection.hpp).
  struct Tuning {
    StoppingLaw law;
    double mean = 1.0;  ///< E[K], mean number of trainings
    /// The candidates among which each training's settings were drawn: for each one, as text, the
    /// settings in which candidates differ.
    std::vector<std::string> grid;
    std::string grid_checksum;  ///< checksum of the texts in `grid` (checksum_of_grid)
    /// Privacy that each of the listed candidates spends, on its training or on its score.
    struct Part {
      /// Whether `spending` is the cost of a candidate's score on held-out rows; if false, it is
      /// the cost of the candidate's training.
      bool of_score = false;
      /// Indices in `grid`, ascending, of the candidates for which `spending` is the privacy cost.
      std::vector<std::uint64_t> candidates;
      RunSpending spending;
    };
    std::vector<Part> parts;
    /// Kind of bound from which the selection's epsilon was computed.
    SelectionEpsilon::By by = SelectionEpsilon::By::profile;
    double order = 0.0;  ///< Renyi order of the selection's bound; 0 if it is not a Renyi bound
    /// The parts of epsilon and delta if one noisy number of examples was released for all
    /// trainings: a part for that number, and a part for the selection that follows. `parts` then
    /// states what the trainings spend in addition to the number.
    std::optional<CountSplit> count = {};

    /// Returns the selection in the form that the accountant takes: the distribution `law` of the
    /// number of trainings, and what each candidate spends (`parts`). Leaves out `count`.
    TunedRun run() const;
  };

  Status status = Status::finished;
  /// Reasons why the run must not be released; empty if it may be.
  std::vector<std::string> not_for_release;
  /// (epsilon, delta) guarantee for everything that is released. It differs from that of the
  /// training alone, promise.epsilon, only if rows were held out (hold_out) or the training was
  /// selected among others (select). NaN if the file claims no privacy.
  double epsilon = 0.0, delta = 0.0;
  Promise promise;
  std::optional<Groups> groups;
  std::vector<NoisyValue> noisy_values;
  std::optional<Unit> unit;
  std::optional<Holdout> holdout;
  std::optional<Tuning> tuning;

  // Facts about the data.
  std::string dataset;
  std::string normalise = "none", features = "none";
  std::optional<FeatureRelease> feature_release;
  std::vector<double> class_weights;  ///< weight of each class, as given by the user; empty if none
  Size size;
  /// The parts of (epsilon, delta) for releasing the noisy number of examples and for training.
  /// Empty if the number is public, or if its release is counted together with the training's.
  std::optional<CountSplit> split;
  TestSet test_set = TestSet::none;

  // Settings of the run.
  std::string precision = "fp32";  ///< precision of matrix products
  std::string rng = "chacha20";
  bool seeded = false;
  std::vector<std::string> unsafe_flags;
  bool allow_weak_privacy = false;
  bool fresh_noise_allowed = false;
  /// Number of releases that were charged again, because the run's random key (which draws the
  /// noise) was lost, and steps were repeated with the noise of a new one.
  std::uint64_t releases_repeated = 0;
  /// Number of times that the run's random key was lost and replaced by a new one. If it is above
  /// 0, epsilon is that of the whole budget. Empty if not stated.
  std::optional<std::uint64_t> keys_lost;
  /// Assumptions about the data files without which the guarantee does not hold.
  std::vector<std::string> assumptions;
  std::optional<PublicInput> initial_weights;  ///< file of the weights at step 0
  std::vector<std::string> warnings;           ///< for readers: ways in which the guarantee is weak
  /// Version of the format in which the run's pages in release/ (report.html, PRIVACY.txt,
  /// README.md) were written; 0: there are none.
  int pages = 0;
  Build build;

  bool for_release() const { return not_for_release.empty(); }
  std::uint64_t max_rows() const { return unit ? unit->max_rows : 1; }
  /// States that the units of `part` were held out from training. A unit is either trained on or
  /// held out, so `epsilon` becomes the larger epsilon of the two (privacy/README.md).
  void hold_out(const Holdout& part);
  /// States that this training was selected among others. Computes `epsilon` at `delta` for the
  /// whole selection, and the fields of `tuning` that follow from the others: mean, grid_checksum,
  /// by and order. If tuning.count is set, `epsilon` and `delta` are the whole budget that it
  /// divides. Removes the bounds for groups, because none is known for a selection. Throws
  /// std::domain_error if the selection has no bound, or one above its part of that budget.
  void select(Tuning tuning, double delta);
};

/// Texts that a certificate's JSON contains if the training was selected among others (tuning):
/// what is released, the distribution of the number of trainings, an assumption, and what epsilon
/// covers.
inline constexpr const char* kSelection =
    "the best of a random number of trainings; neither their number nor anything of the others is "
    "released";
inline constexpr const char* kStopping = "truncated negative binomial, given at most cap trainings";
inline constexpr const char* kTimeOfSelection =
    "nobody else sees the running time, which shows the number of trainings";
inline constexpr const char* kCounted = "the selection among the grid is counted in epsilon";
/// Text of the field `hyperparameter_tuning` if the training was not selected among others;
/// otherwise the field is kCounted.
inline constexpr const char* kNotCounted = "not counted in epsilon";

/// Returns a checksum of the candidates' settings, as 16 hexadecimal digits.
std::string checksum_of_grid(const std::vector<std::string>& grid);
/// Text of the certificate's JSON if a noisy number of examples was released once for all trainings
/// of a tuning.
inline constexpr const char* kCountedOnce =
    "one noisy number of examples for all trainings, then the selection: basic composition, "
    "whatever the number is";

/// Returns a bound on epsilon for the selection that `tuning` describes, at `delta`. If the budget
/// is divided (tuning.count), the bound is at tuning.count's training_delta instead. group: maximum
/// number of examples of a unit of privacy.
SelectionEpsilon epsilon_of(const Certificate::Tuning& tuning, double delta, std::uint64_t group);

std::string_view text_of(Certificate::Status status);
std::string_view text_of(Certificate::TestSet test_set);

/// Returns the JSON object of a public input (a file that was used at no privacy cost, such as
/// public weights), as in privacy.json and in the released model's file.
nlohmann::ordered_json to_json(const Certificate::PublicInput& input);
/// Reads the JSON that to_json(PublicInput) writes. Missing fields stay empty. json: the object.
Certificate::PublicInput read_public_input(const nlohmann::json& json);

/// Returns the certificate as JSON in format 2, the content of release/privacy.json.
nlohmann::ordered_json to_json(const Certificate& certificate);
/// Returns the certificate as the text of the file release/privacy.json.
std::string to_text(const Certificate& certificate);

/// Reads a certificate of format 1 or 2. Missing numbers are 0. Throws std::invalid_argument, with
/// the field, if the text is not a certificate. Does not check the statements (privacy/verify
/// does).
Certificate read_certificate(std::string_view text);

}  // namespace cudp::privacy
