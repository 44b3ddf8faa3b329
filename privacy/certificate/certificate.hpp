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

namespace cudp::privacy {

/// The program that wrote a certificate.
struct Build {
  std::string version, commit, compiler, backend;
};

/// The statement of a run about its privacy, release/privacy.json: the promise, and every number
/// that is needed to check it. It contains nothing about the training data that was not paid for.
/// The trainer fills it (runtime/training/certify.hpp); write.cpp and read.cpp are its only writer
/// and its only reader.
struct Certificate {
  enum class Status {
    finished,
    not_finished,  ///< the plan of a run in progress or cut short
    refused        ///< the noisy number of examples allowed no plan
  };
  enum class TestSet { none, public_rows, private_rows };

  /// Units that were held out.
  struct Holdout {
    double share = 0.0;
    double epsilon = 0.0, delta = 0.0;  ///< of their released figures; 0 if none were released
    double sigma = 0.0;                 ///< noise multiplier of each release
    std::uint64_t releases = 0;
    std::optional<double> threshold = {};  ///< probability from which the second class is predicted
  };
  /// The unit of privacy, if it is not the row.
  struct Unit {
    std::string column;          ///< column of the table: all rows with one text in it are a unit
    std::uint64_t max_rows = 1;  ///< rows of a unit that are used
  };
  /// The number of training examples as far as it is public.
  struct Size {
    double value = 0.0;      ///< N, or the noisy number that was released
    double noise_std = 0.0;  ///< 0 if N is public
    bool is_public() const { return noise_std == 0.0; }
  };
  /// The release that a transform of the features is computed from.
  struct FeatureRelease {
    double sigma = 0.0;                      ///< noise multiplier
    std::optional<std::int64_t> dimensions;  ///< principal components; empty for channels' moments
  };

  int format = 2;  ///< of the file; 1 is read, too
  Status status = Status::finished;
  std::vector<std::string> not_for_release;  ///< reasons; empty if the run may be released
  /// The promise for everything that is released, and `promise.epsilon` for the rows trained on.
  /// They differ only with held-out rows (hold_out). NaN in a file that claims none.
  double epsilon = 0.0, delta = 0.0;
  Promise promise;
  std::optional<Groups> groups;
  std::vector<NoisyValue> noisy_values;
  std::optional<Unit> unit;
  std::optional<Holdout> holdout;

  // Data.
  std::string dataset;
  std::string normalise = "none", features = "none";
  std::optional<FeatureRelease> feature_release;
  std::vector<double> class_weights;  ///< as they were given; empty: none
  Size size;
  /// Parts of the promise that the noisy number of examples and the training have, if divided.
  std::optional<CountSplit> split;
  TestSet test_set = TestSet::none;

  // Settings of the run.
  std::string precision = "fp32";  ///< of matrix products
  std::string rng = "chacha20";
  bool seeded = false;
  std::vector<std::string> unsafe_flags;
  bool allow_weak_privacy = false;
  bool fresh_noise_allowed = false;
  std::uint64_t releases_repeated = 0;     ///< releases charged again because a key was lost
  std::optional<std::uint64_t> keys_lost;  ///< above 0, epsilon is the budget; empty: not stated
  std::vector<std::string> assumptions;    ///< about the data's files, which the promise rests on
  std::vector<std::string> warnings;       ///< what the promise is too weak for
  Build build;

  bool for_release() const { return not_for_release.empty(); }
  std::uint64_t max_rows() const { return unit ? unit->max_rows : 1; }
  /// Adds held-out units. A unit is trained on or held out, never both: the larger of the two
  /// promises holds for it (privacy/README.md).
  void hold_out(const Holdout& part);
};

std::string_view text_of(Certificate::Status status);
std::string_view text_of(Certificate::TestSet test_set);

/// The certificate as it is published, in format 2.
nlohmann::ordered_json to_json(const Certificate& certificate);
/// The text of release/privacy.json.
std::string to_text(const Certificate& certificate);

/// Reads formats 1 and 2. Numbers that are not there are 0. Throws std::invalid_argument, with the
/// field, if the text is no certificate. It does not check what is stated (privacy/verify).
Certificate read_certificate(std::string_view text);

}  // namespace cudp::privacy
