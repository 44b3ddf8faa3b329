#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>

#include "kernels/random/random.hpp"
#include "privacy/verify/transcript.hpp"

namespace cudp {

/// The type of values that leave, in memory.
enum class NumberKind { float32, float64, index };

/// The public properties of values that leave the private side: all of them for a release of sums
/// with Gaussian noise, name and number for a choice.
struct Leaving {
  std::string_view name;
  Stream purpose;
  std::uint64_t step;
  double grid = 0.0;
  double noise_std = 0.0;
  double sensitivity = 0.0;
  NumberKind kind = NumberKind::float64;  ///< show_witness fills it in
};

/// Sees every value that leaves the private side, at the moment it does, and may put another in its
/// place. For tests: with the values of a run on other data, whatever then differs was no function
/// of what was paid for (tests/audit/non_interference_test.cpp). The program itself has one only
/// for the twin of a run that is checked (runtime/audit/twin.hpp), an Observer.
class Witness {
 public:
  Witness() = default;
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  virtual ~Witness() = default;

  virtual void leaves(const Leaving& what, std::span<std::byte> values) = 0;
};

class SeededKey;  // runtime/config/seeded_key.hpp

/// A witness that sees secrets, too: sums before noise, the examples drawn, the random key. There
/// is none without the proof that a run's key follows from a seed, as that of a run for release
/// does not; it is shown nothing before such a run has begun; and other runs refuse to begin or to
/// go on while it is there.
class Observer : public Witness {
 public:
  explicit Observer(const SeededKey&) {}

  /// charged: asks how many releases the run's ledger has on disk by now.
  virtual void begins(const verify::Begin& run, std::function<std::uint64_t()> charged) = 0;
  /// State, Batch or Update.
  virtual void sees(const verify::Record& record) = 0;
  /// The sums that noise is about to be added to, in units of the grid. The values that leave come
  /// next.
  virtual void adds_noise(const Leaving& what, std::span<const std::int64_t> sums) = 0;
  /// The numbers on no grid that noise is about to be added to: the scores that a choice is made
  /// among, a minimum.
  virtual void adds_noise(const Leaving& what, std::span<const double> numbers) = 0;
};

/// The witness of this process; null for none. It is set before a run begins.
Witness* witness();
void set_witness(Witness* witness);

/// Whether the witness is an observer, and so no run for release may begin.
bool wants_secrets();
/// While it lives, and until another begins, the witness is shown secrets, if it wants any. For
/// seeded runs only (runtime/run).
class Observation {
 public:
  Observation(const verify::Begin& run, std::function<std::uint64_t()> charged);
  ~Observation();
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;
};
/// The witness if secrets may be shown to it; else null.
Observer* observer();

template <class T>
void show_witness(Leaving what, std::span<T> values) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                std::is_same_v<T, std::size_t>);
  Witness* const w = witness();
  if (w == nullptr) return;
  what.kind = std::is_same_v<T, float>    ? NumberKind::float32
              : std::is_same_v<T, double> ? NumberKind::float64
                                          : NumberKind::index;
  w->leaves(what, std::as_writable_bytes(values));
}

}  // namespace cudp
