#include "privacy/pld/lattice.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cudp::privacy::pld {
namespace {

void add(std::vector<LatticeDot>& dots, std::int64_t index, double mass) {
  if (!dots.empty() && dots.back().index == index) {
    dots.back().mass += mass;
  } else if (dots.size() > 1 && dots[dots.size() - 2].index == index) {
    dots[dots.size() - 2].mass += mass;
  } else {
    dots.push_back({index, mass});
  }
}

struct Split {
  std::int64_t low = 0;
  double inside = 0.0;  ///< the loss less low * interval
  double share = 0.0;   ///< what goes to low + 1
};

/// A loss within 1e-9 intervals of a lattice point is taken to be there: see lattice_rounding.
Split split(double loss, double interval) {
  const double place = std::floor(loss / interval + lattice_rounding);
  const double inside = loss - place * interval;
  if (inside <= lattice_rounding * interval) return {static_cast<std::int64_t>(place), 0.0, 0.0};
  return {static_cast<std::int64_t>(place), std::fmin(inside, interval),
          std::fmin(std::expm1(-inside) / std::expm1(-interval), 1.0)};
}

struct Rise {
  double of_chord = 0.0;      ///< how far the chord over a cell rises above the curve inside
  double over_tangent = 0.0;  ///< the curve at the right end over its tangent at the left end
};

/// The largest rise of the chord is at one of the dots inside, where their tents add up. Losses
/// from the cell's left end; q relative to there too.
class CellRise {
 public:
  explicit CellRise(double interval) : width_(std::expm1(interval)) {}
  void add(double inside, double mass) {
    inner_.push_back({std::expm1(inside), mass * std::exp(-inside)});
  }
  Rise finish() {
    double left = 0.0, right = 0.0, most = 0.0;
    for (const Inner& dot : inner_) right += dot.q * (width_ - dot.place);
    const double over_tangent = right;
    for (const Inner& dot : inner_) {
      left += dot.q * dot.place;
      right -= dot.q * (width_ - dot.place);
      most = std::fmax(most, ((width_ - dot.place) * left + dot.place * right) / width_);
    }
    inner_.clear();
    return {.of_chord = most, .over_tangent = over_tangent};
  }

 private:
  struct Inner {
    double place = 0.0;  ///< e^(loss - left end) - 1
    double q = 0.0;
  };
  double width_;
  std::vector<Inner> inner_;
};

/// The lattice's dots by chords, and the rise right of each dot where it is asked for: from below.
std::vector<LatticeDot> connect(std::span<const Dot> dots, double offset, double interval,
                                std::vector<Rise>* rises) {
  std::vector<LatticeDot> lattice;
  lattice.reserve(2 * dots.size());
  CellRise rise(interval);
  std::int64_t cell = 0;
  const std::int64_t first = dots.empty() ? 0 : split(dots[0].loss - offset, interval).low;
  bool open = false;
  const auto finish = [&] {
    if (rises == nullptr || !open) return;
    rises->resize(lattice.size());
    (*rises)[lattice.size() - 2] = rise.finish();  // the last dot is the cell's right end
    open = false;
  };
  for (const Dot& dot : dots) {
    Split at = split(dot.loss - offset, interval);
    // In the first cell, where the curve is at its least possible, the tangent is paid for by the
    // losses inside: those near its start are smaller by less than that.
    if (rises != nullptr && at.low == first && at.inside < 0.5 * interval) at.share = 0.0;
    if (at.low != cell) finish();
    cell = at.low;
    if (at.share == 0.0) {
      add(lattice, at.low, dot.mass);
      continue;
    }
    add(lattice, at.low, dot.mass * (1.0 - at.share));
    add(lattice, at.low + 1, dot.mass * at.share);
    if (rises != nullptr) rise.add(at.inside, dot.mass);
    open = true;
  }
  finish();
  if (rises != nullptr) rises->resize(lattice.size());
  return lattice;
}

/// The curve's height at each dot: sum over the dots above of mass (1 - e^(here - there)).
std::vector<double> heights(std::span<const LatticeDot> lattice, double interval) {
  std::vector<double> height(lattice.size(), 0.0);
  double q = 0.0;  // of the dots above, times e^here
  for (std::size_t i = lattice.size() - 1; i-- > 0;) {
    const double gap = static_cast<double>(lattice[i + 1].index - lattice[i].index) * interval;
    q += lattice[i + 1].mass;
    height[i] = height[i + 1] + q * -std::expm1(-gap);
    q *= std::exp(-gap);
  }
  return height;
}

/// Its height over the line P - e^loss Q of all the dots: sum over those below of
/// mass (e^(here - there) - 1).
std::vector<double> heights_over_line(std::span<const LatticeDot> lattice, double interval) {
  std::vector<double> height(lattice.size(), 0.0);
  double q = 0.0;
  for (std::size_t i = 1; i < lattice.size(); ++i) {
    const double gap = static_cast<double>(lattice[i].index - lattice[i - 1].index) * interval;
    q += lattice[i - 1].mass;
    height[i] = height[i - 1] + q * std::expm1(gap);
    q *= std::exp(gap);
  }
  return height;
}

}  // namespace

Lattice lattice_above(const Dots& dots, double interval) {
  const double offset = likeliest(dots.upper());
  return {.dots = connect(dots.upper(), offset, interval, nullptr),
          .offset = offset,
          .infinite = dots.infinite()};
}

Lattice lattice_below(const Dots& dots, double interval, double negligible) {
  const double offset = likeliest(dots.lower());
  std::vector<Rise> rises;  // right of each dot
  std::vector<LatticeDot> lattice = connect(dots.lower(), offset, interval, &rises);
  const std::size_t n = lattice.size();
  if (n == 0) return {};
  const auto rise = [&](std::size_t i) { return rises[i].of_chord; };
  std::vector<double> lowered(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) lowered[i] = std::fmax(rise(i), i > 0 ? rise(i - 1) : 0.0);
  if (n > 1) {  // the first dot cannot be lowered: from there on the tangent, not the chord
    lowered[0] = 0.0;
    lowered[1] = std::fmax(rises[0].over_tangent, rise(1));
    rises[0].of_chord = 0.0;
  }
  // A loss may end inside a cell, with much probability: the lowered points would leave the region
  // above 0 and above the line P - e^loss Q, where curves lie. Instead the curve joins that line,
  // or 0, at a dot that is high enough above it for the chord beside it, and has no dots beyond; or
  // misses that by next to nothing, which is taken from the probability.
  const std::vector<double> height = heights(lattice, interval);
  const std::vector<double> over_line = heights_over_line(lattice, interval);
  std::size_t begin = 0, end = n - 1;
  for (std::size_t i = 0; i < end; ++i)
    if (lowered[i] - height[i] > negligible) end = i;
  for (std::size_t i = n; i-- > begin + 1;)
    if (lowered[i] - over_line[i] > 1e-15) begin = i;
  while (end > 0 && rise(end - 1) - height[end] > negligible) --end;
  while (begin < end && rise(begin) - over_line[begin] > 1e-15) ++begin;
  double total = 0.0;
  for (const LatticeDot& dot : lattice) total += dot.mass;
  if (end <= begin || over_line[begin] - height[begin] > negligible)  // no loss
    return {.dots = {{0, std::fmin(total, 1.0)}}, .offset = 0.0};
  lowered[begin] = std::fmax(over_line[begin], rise(begin));
  lowered[end] = std::fmax(height[end], rise(end - 1));
  const auto gap = [&](std::size_t i) {
    return static_cast<double>(lattice[i + 1].index - lattice[i].index) * interval;
  };
  // Lowering changes the slopes: the second difference in e^loss, times e^loss for the first
  // distribution's mass.
  for (std::size_t i = begin + 1; i < end; ++i)
    lattice[i].mass -= (lowered[i + 1] - lowered[i]) / std::expm1(gap(i)) -
                       (lowered[i] - lowered[i - 1]) / -std::expm1(-gap(i - 1));
  lattice[begin].mass =
      (over_line[begin + 1] - lowered[begin + 1] - over_line[begin] + lowered[begin]) /
      std::expm1(gap(begin));
  lattice[end].mass = (height[end - 1] - lowered[end - 1] - height[end] + lowered[end]) /
                      -std::expm1(-gap(end - 1));
  Lattice result{.dots = {}, .offset = offset, .infinite = lowered[end] - height[end]};

  // The lower convex hull: a negative dot is shared between its neighbours, like a positive one
  // that is connected. The first one's can only go to the right, the last one's to infinity.
  std::vector<LatticeDot>& hull = result.dots;
  hull.reserve(end + 1 - begin);
  double carried = 0.0;  // negative mass handed to the next dot
  for (std::size_t i = begin; i <= end; ++i) {
    hull.push_back({lattice[i].index, lattice[i].mass + carried});
    carried = 0.0;
    if (i == end) break;
    while (!hull.empty() && hull.back().mass < 0.0) {
      const LatticeDot bad = hull.back();
      hull.pop_back();
      if (hull.empty()) {
        carried += bad.mass;
        break;
      }
      const double to_left = static_cast<double>(bad.index - hull.back().index) * interval;
      const double whole = static_cast<double>(lattice[i + 1].index - hull.back().index) * interval;
      const double share = std::expm1(-to_left) / std::expm1(-whole);
      carried += bad.mass * share;
      hull.back().mass += bad.mass * (1.0 - share);
    }
  }
  while (!hull.empty() && hull.back().mass < 0.0) {  // by as much as was negligible
    result.infinite -= hull.back().mass;
    hull.pop_back();
  }
  return result;
}

double likeliest(std::span<const Dot> dots) {
  return std::max_element(dots.begin(), dots.end(),
                          [](const Dot& a, const Dot& b) { return a.mass < b.mass; })
      ->loss;
}

double added_log_sum(std::span<const Dot> dots, double interval, double tilt) {
  const Moments now = moments(dots, tilt);
  const double offset = likeliest(dots);
  const double whole = std::expm1(tilt * interval);
  double added = 0.0;
  for (const Dot& dot : dots) {
    const Split at = split(dot.loss - offset, interval);
    // (1 - share) e^(-tilt inside) + share e^(tilt (interval - inside)) - 1
    const double here = std::expm1(-tilt * at.inside);
    const double grown = here + at.share * whole * (1.0 + here);
    added += std::exp(std::log(dot.mass) + tilt * dot.loss - now.log_sum) * grown;
  }
  return added;
}

}  // namespace cudp::privacy::pld
