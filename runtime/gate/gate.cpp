#include "runtime/gate/gate.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "kernels/random/rounded_normal.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/gate/release_observer.hpp"

namespace cudp {
namespace {

/// Minimum of noise_std / grid for the grids that noise_grid() chooses.
constexpr double kMinS = 0x1p20;
constexpr std::size_t kAtOnce = 1 << 16;  // numbers drawn in one call; a multiple of 128

bool is_power_of_two(double x) {
  int e = 0;
  return std::isnormal(x) && std::frexp(x, &e) == 0.5;
}

void check(const GaussianRelease& r, std::size_t dimension) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(std::string(r.name) + ": " + what);
  };
  if (dimension == 0) refuse("expected sums, found none");
  if (!is_power_of_two(r.grid)) refuse("expected a power of two for a grid");
  const double s = r.noise_std / r.grid;
  if (!(s >= kMinRoundedNormalS && s <= kLargestRoundedNormalS))
    refuse("expected noise between 2^16 and 2^40 times the grid");
  if (!(r.sensitivity > 0.0 && std::isfinite(r.sensitivity)))
    refuse("expected a positive sensitivity");
}

double sigma_of(const privacy::Mechanism& mechanism) {
  if (const auto* sampled = std::get_if<privacy::PoissonGaussian>(&mechanism))
    return sampled->sigma;
  if (const auto* epoch = std::get_if<privacy::AllocatedGaussian>(&mechanism)) return epoch->sigma;
  return std::get<privacy::Gaussian>(mechanism).sigma;
}

/// Returns whether the noise is at least as large as the charge states, i.e. charged noise
/// multiplier times sensitivity <= noise_std. Evaluated without rounding errors.
bool is_paid_for(const GaussianRelease& r) {
  return std::fma(sigma_of(r.charge.mechanism), r.sensitivity, -r.noise_std) <= 0.0;
}

}  // namespace

Gate::Gate(Generator generator, SharedKey key, ReleaseAuthority& authority,
           std::vector<privacy::NoisyValue> earlier, ReleaseObserver* release_observer)
    : generator_(generator),
      key_(std::move(key)),
      authority_(authority),
      release_observer_(release_observer),
      listed_(std::move(earlier)) {}

void Gate::list(const GaussianRelease& r, std::size_t dimension) {
  released_.push_back({r, dimension});
  privacy::NoisyValue now{.name = std::string(r.name),
                          .times = listed_.empty() ? 0 : listed_.back().times,
                          .numbers = dimension,
                          .grid = r.grid,
                          .noise_std = r.noise_std,
                          .sensitivity = r.sensitivity};
  if (listed_.empty() || now != listed_.back()) {
    now.times = 0;
    listed_.push_back(std::move(now));
  }
  ++listed_.back().times;
}

/// Checks all conditions of a release, charges it, and adds it to the list of releases. Throws
/// std::logic_error if there is less noise than the charge states, or if the privacy budget refuses
/// it.
void Gate::admit_once(const GaussianRelease& r, std::size_t dimension) {
  check(r, dimension);
  if (!is_paid_for(r))
    throw std::logic_error(std::string(r.name) + ": less noise than it is charged as");
  if (!authority_.admit(r.charge)) throw std::logic_error(std::string(r.name) + ": not paid for");
  if (!used_.emplace(r.purpose, r.step).second)
    throw std::logic_error(std::string(r.name) + ": released a second time under the same noise");
  list(r, dimension);
}

void Gate::use_key(Stream purpose, SharedKey key) {
  other_keys_.insert_or_assign(purpose, std::move(key));
}

const RandomKey& Gate::key_of(Stream purpose) const {
  const auto other = other_keys_.find(purpose);
  return other == other_keys_.end() ? key_.key() : other->second.key();
}

std::int64_t Gate::draw_noise(const GaussianRelease& r) {
  if (release_observer_ != nullptr)
    throw std::logic_error(std::string(r.name) +
                           ": a release observer could not receive the value");
  admit_once(r, 1);
  return rounded_normals({generator_, key_of(r.purpose), r.purpose, r.step}, r.noise_std / r.grid,
                         0, 1)
      .front();
}

std::vector<double> Gate::release(const GaussianRelease& r, std::span<const std::int64_t> sums) {
  admit_once(r, sums.size());

  const ReleasedValue what{.name = r.name,
                           .purpose = r.purpose,
                           .step = r.step,
                           .grid = r.grid,
                           .noise_std = r.noise_std,
                           .sensitivity = r.sensitivity};
  if (SecretObserver* const o = observer(release_observer_)) o->before_noise(what, sums);
  const RandomStream stream{generator_, key_of(r.purpose), r.purpose, r.step};
  const double s = r.noise_std / r.grid;  // exact
  std::vector<double> out;
  out.reserve(sums.size());
  for (std::size_t at = 0; at < sums.size(); at += kAtOnce) {
    const auto part = sums.subspan(at, std::min(kAtOnce, sums.size() - at));
    const std::vector<std::int64_t> k =
        rounded_normals(stream, s, static_cast<std::int64_t>(at), part.size());
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::uint64_t sum =
          static_cast<std::uint64_t>(part[i]) + static_cast<std::uint64_t>(k[i]);
      out.push_back(r.grid * static_cast<double>(static_cast<std::int64_t>(sum)));
    }
  }
  show_released(release_observer_, what, std::span(out));
  return out;
}

double Gate::release(const GaussianRelease& r, std::int64_t sum) {
  return release(r, std::span(&sum, 1)).front();
}

double noise_grid(double noise_std, double coarsest) {
  if (!(noise_std > 0.0 && std::isfinite(noise_std)))
    throw std::invalid_argument("expected noise that is positive and finite");
  return std::fmin(coarsest, std::ldexp(1.0, std::ilogb(noise_std / kMinS)));
}

std::int64_t units_of(double sum, double grid) {
  const double units = std::nearbyint(sum / grid);
  if (!std::isfinite(units)) return 0;
  const double rest = std::remainder(units, 0x1p64);  // exact, in [-2^63, 2^63]
  return static_cast<std::int64_t>(rest == 0x1p63 ? -0x1p63 : rest);
}

std::vector<std::int64_t> units_of(std::span<const double> sums, double grid) {
  std::vector<std::int64_t> units;
  units.reserve(sums.size());
  for (const double sum : sums) units.push_back(units_of(sum, grid));
  return units;
}

}  // namespace cudp
