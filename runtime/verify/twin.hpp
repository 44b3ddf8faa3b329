#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/checker.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/verify/released_run.hpp"

namespace cudp {

struct TwinSettings {
  std::filesystem::path folder;      ///< for the twin's run; must not exist
  std::string data_dir;              ///< where the files that the settings name are looked for
  std::string dataset;               ///< in place of the settings'; empty: that
  std::string schema;                ///< likewise
  std::string device;                ///< likewise
  std::optional<std::int64_t> seed;  ///< empty: one that nobody guesses
  std::int64_t threads = 0;
};

struct TwinVerdict {
  verify::Verdict transcript;  ///< of the twin's own run, against its own certificate
  /// The statements of the run's certificate that differ from the twin's, and should not.
  std::vector<std::string> differences;
  std::int64_t seed = 0;
};

/// Trains the settings of a released run once more, with a seed, in this process and in a folder
/// of its owner's alone, and holds everything that the twin does against its certificate
/// (verify::check); then the two certificates against each other. The transcript stays in memory:
/// its bytes are about 30 times the parameters, times the steps. Throws InputError, BudgetError
/// as a training does, and InputError where the folder exists.
TwinVerdict train_twin(const ReleasedRun& run, const TwinSettings& settings, Reporter& reporter);

/// The differences of two certificates of the same settings, but for the seed, the build and what
/// follows from noise: a noisy size, a filter's decisions, the last clipping norm, a key that was
/// lost. Paths, with both values.
std::vector<std::string> certificate_differences(const std::string& run, const std::string& twin);

}  // namespace cudp
