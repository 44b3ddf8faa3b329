#include "privacy/pld/window.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "privacy/math/log_sum.hpp"
#include "privacy/pld/fft_cache.hpp"

namespace cudp::privacy::pld {
namespace {

constexpr std::size_t kMaxCachedPoints = std::size_t{1} << 20;  // points of all cached transforms

double log_sum(const LoggedAtoms& logged, double tilt) {
  LogSum sum;
  for (std::size_t i = 0; i < logged.atoms.size(); ++i)
    sum.add(logged.log_masses[i] + tilt * logged.atoms[i].loss);
  return sum.value();
}

double log_sum(const Lattice& lattice, double tilt, double interval) {
  LogSum sum;
  for (const LatticeAtom& atom : lattice.atoms)
    sum.add(std::log(atom.mass) + tilt * static_cast<double>(atom.index) * interval);
  return sum.value();
}

}  // namespace

Reach Cumulants::reach(double tilt, double log_outside) const {
  Reach reach;
  double log_here = 0.0, variance = 0.0;
  for (const Term& term : terms_) {
    const auto n = static_cast<double>(term.count);
    log_here += n * term.at.log_sum;
    reach.mean += n * term.at.mean;
    variance += n * term.at.variance;
  }
  variance = std::fmax(variance, 1e-8 * reach.mean * reach.mean);
  reach.deviation = std::sqrt(variance);
  // Each change of the tilt (move) gives a Chernoff bound. For a Gaussian sum the best move is
  // sqrt(2 log_outside) / deviation; for a skewed sum it differs from that by some factor. If this
  // move would make the tilt negative, moves that keep it positive are tried, too. They give the
  // better bound if losses far below the mean have almost no tilted probability.
  const double usual = std::sqrt(2.0 * log_outside / std::fmax(variance, 1e-300));
  reach.below = reach.above = std::numeric_limits<double>::infinity();
  const auto try_move = [&](double move) {
    double log_moved = 0.0;
    for (const Term& term : terms_)
      log_moved += static_cast<double>(term.count) * log_sum(term.atoms, tilt + move);
    const double found = (log_moved - log_here - move * reach.mean + log_outside) / std::fabs(move);
    double& best = move > 0.0 ? reach.above : reach.below;
    if (!(found < best)) return false;
    best = found;
    (move > 0.0 ? reach.move_above : reach.move_below) = move;
    return true;
  };
  for (const double sign : {-1.0, 1.0})
    for (double factor = 1.0; factor >= 0.01 && try_move(sign * usual * factor);) factor /= 1.5;
  if (usual > tilt)
    for (const double part : {0.9, 0.5, 0.1}) try_move(-part * tilt);
  return reach;
}

double lattice_mean(std::span<const Repeated> releases, double tilt, double interval) {
  double mean = 0.0;
  std::vector<Atom> atoms;
  std::vector<double> log_masses;
  for (const Repeated& release : releases) {
    atoms.clear();
    log_masses.clear();
    for (const LatticeAtom& atom : release.lattice.atoms) {
      if (!(atom.mass > 0.0)) continue;
      atoms.push_back({static_cast<double>(atom.index) * interval, atom.mass});
      log_masses.push_back(std::log(atom.mass));
    }
    mean += static_cast<double>(release.count) * moments({atoms, log_masses}, tilt).mean;
  }
  return mean;
}

std::size_t length_for(double span, double interval) {
  const double needed = std::ceil(span / interval) + 2.0;
  if (!(needed < 0x1p40)) return std::size_t{1} << 40;
  return std::bit_ceil(static_cast<std::size_t>(std::fmax(needed, 64.0)));
}

void bound_outside(std::span<const Repeated> releases, double tilt, const Reach& reach,
                   Window& window) {
  double log_here = 0.0, log_up = 0.0, log_down = 0.0;
  for (const Repeated& release : releases) {
    const auto n = static_cast<double>(release.count);
    log_here += n * log_sum(release.lattice, tilt, window.interval);
    log_up += n * log_sum(release.lattice, tilt + reach.move_above, window.interval);
    log_down += n * log_sum(release.lattice, tilt + reach.move_below, window.interval);
  }
  const double low = static_cast<double>(window.first) * window.interval;
  const double high = low + static_cast<double>(window.length) * window.interval;
  const double margin = 1.0 + 1e-6;
  window.tilted_outside = margin * (std::exp(log_up - log_here - reach.move_above * high) +
                                    std::exp(log_down - log_here - reach.move_below * low));
  window.mass_above = margin * std::exp(log_up - (tilt + reach.move_above) * high);
}

std::shared_ptr<const Fft> fft_of(std::size_t length) {
  thread_local std::vector<std::shared_ptr<const Fft>> cache;
  for (const std::shared_ptr<const Fft>& fft : cache)
    if (fft->length() == length) return fft;
  const auto too_much = [&] {
    std::size_t points = length;
    for (const std::shared_ptr<const Fft>& fft : cache) points += fft->length();
    return points > kMaxCachedPoints;
  };
  while (!cache.empty() && (cache.size() >= 3 || too_much())) cache.erase(cache.begin());
  cache.push_back(std::make_shared<const Fft>(length));
  return cache.back();
}

}  // namespace cudp::privacy::pld
