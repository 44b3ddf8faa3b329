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

/// Sees every value that leaves the private side of a training, at the moment it does, and may put
/// another in its place. For tests: with the values of a run on other data, whatever then differs
/// was no function of what was paid for (tests/audit/non_interference_test.cpp). The program itself
/// gives one only to the twin of a run that is checked (runtime/verify/twin.hpp), an Observer.
///
/// It is given to a training when that begins or goes on, and held by the training's gate, which
/// engines and choices by noise of their own ask for it. It outlives the training.
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
/// does not; it is shown nothing before such a run has begun; and no training for release takes it
/// (check_witness).
class Observer : public Witness {
 public:
  explicit Observer(const SeededKey&) {}

  /// A process begins or goes on with a seeded run: from here on the observer is shown secrets.
  /// charged: asks how many releases the run's ledger has on disk by now.
  void begin(const SeededKey&, const transcript::Begin& run,
             std::function<std::uint64_t()> charged) {
    has_begun_ = true;
    begins(run, std::move(charged));
  }
  bool has_begun() const { return has_begun_; }

  /// State, Batch or Update.
  virtual void sees(const transcript::Record& record) = 0;
  /// The sums that noise is about to be added to, in units of the grid. The values that leave come
  /// next.
  virtual void adds_noise(const Leaving& what, std::span<const std::int64_t> sums) = 0;
  /// The numbers on no grid that noise is about to be added to: the scores that a choice is made
  /// among, a minimum.
  virtual void adds_noise(const Leaving& what, std::span<const double> numbers) = 0;

 private:
  virtual void begins(const transcript::Begin& run, std::function<std::uint64_t()> charged) = 0;

  bool has_begun_ = false;
};

/// The witness if secrets may be shown to it; else null, as for no witness.
inline Observer* observer(Witness* witness) {
  auto* const o = dynamic_cast<Observer*>(witness);
  return o != nullptr && o->has_begun() ? o : nullptr;
}

/// Shows values that leave; nothing where there is no witness.
template <class T>
void show_witness(Witness* witness, Leaving what, std::span<T> values) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                std::is_same_v<T, std::size_t>);
  if (witness == nullptr) return;
  what.kind = std::is_same_v<T, float>    ? NumberKind::float32
              : std::is_same_v<T, double> ? NumberKind::float64
                                          : NumberKind::index;
  witness->leaves(what, std::as_writable_bytes(values));
}

}  // namespace cudp
