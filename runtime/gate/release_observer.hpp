#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/random/random.hpp"
#include "privacy/transcript/records.hpp"

namespace cudp {

/// Type of the elements of released values in memory: float, double, or an index (an integer).
enum class NumberKind { float32, float64, index };

/// Public properties of values that a training has released: their name, step, type, grid, noise
/// and so on. All members are set for sums with Gaussian noise; for a noisy choice, such as the
/// index of the best score, all but `grid` and `noise_std`.
struct ReleasedValue {
  std::string_view name;
  Stream purpose;
  std::uint64_t step;
  double grid = 0.0;
  double noise_std = 0.0;
  double sensitivity = 0.0;
  NumberKind kind = NumberKind::float64;  ///< type of the released values; set by show_released()
};

/// Interface that receives every value that a training releases, at the time of its release, and
/// may replace it. Two uses: Tests replace the values by those of a run on other data; if the two
/// runs still differ, a private value was used without being charged to the budget
/// (tests/audit/non_interference_test.cpp). The program uses a SecretObserver when `cudp verify`
/// trains a run again to check it (runtime/verify/replay.hpp).
///
/// An observer is passed to a training when the training starts or resumes. Engines, and noisy
/// selections, get it from the training's gate. It must outlive the training.
class ReleaseObserver {
 public:
  ReleaseObserver() = default;
  ReleaseObserver(const ReleaseObserver&) = delete;
  ReleaseObserver& operator=(const ReleaseObserver&) = delete;
  virtual ~ReleaseObserver() = default;

  /// Called with released values before any other code uses them. values: their bytes; the callee
  /// may overwrite them.
  virtual void on_release(const ReleasedValue& what, std::span<std::byte> values) = 0;
};

class SeededKey;  // runtime/config/seeded_key.hpp

/// Release observer that also receives secrets: sums before noise, the examples drawn, the random
/// key. To construct one, the caller needs a SeededKey, which exists only for runs whose key is
/// derived from a seed; the models of such runs must not be released. The observer receives no
/// secrets before begin() was called for a seeded run. A training whose model may be released
/// rejects it (check_release_observer).
class SecretObserver : public ReleaseObserver {
 public:
  explicit SecretObserver(const SeededKey&) {}

  /// Called when a process starts or resumes a seeded run. The observer receives secrets from here
  /// on. charged: returns the number of releases in the run's ledger on disk.
  void begin(const SeededKey&, const transcript::Begin& run,
             std::function<std::uint64_t()> charged) {
    has_begun_ = true;
    on_begin(run, std::move(charged));
  }
  bool has_begun() const { return has_begun_; }

  /// Called with each record of a training: the parameters and optimizer state from which the steps
  /// start, the examples of a batch, or an update of the parameters.
  virtual void on_record(const transcript::Record& record) = 0;
  /// Called with private sums before noise is added to them, as integer multiples of what.grid. The
  /// next call is on_release(), with the same sums with noise.
  virtual void before_noise(const ReleasedValue& what, std::span<const std::int64_t> sums) = 0;
  /// Called with private numbers that are not rounded to a grid, before noise is added to them: the
  /// scores of a noisy choice, or the minimum of an objective.
  virtual void before_noise(const ReleasedValue& what, std::span<const double> numbers) = 0;

 private:
  virtual void on_begin(const transcript::Begin& run, std::function<std::uint64_t()> charged) = 0;

  bool has_begun_ = false;
};

/// Returns the release observer as a SecretObserver if it may receive secrets now, i.e. if it is
/// one and begin() was called; else null. release_observer: may be null.
inline SecretObserver* observer(ReleaseObserver* release_observer) {
  auto* const o = dynamic_cast<SecretObserver*>(release_observer);
  return o != nullptr && o->has_begun() ? o : nullptr;
}

/// Passes released values to the release observer, which may overwrite them. what: their
/// properties. Does nothing if `release_observer` is null.
template <class T>
void show_released(ReleaseObserver* release_observer, ReleasedValue what, std::span<T> values) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                std::is_same_v<T, std::size_t>);
  if (release_observer == nullptr) return;
  what.kind = std::is_same_v<T, float>    ? NumberKind::float32
              : std::is_same_v<T, double> ? NumberKind::float64
                                          : NumberKind::index;
  release_observer->on_release(what, std::as_writable_bytes(values));
}

}  // namespace cudp
