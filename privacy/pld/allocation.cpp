#include "privacy/pld/allocation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <numbers>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/erf.hpp>

#include "privacy/text/number.hpp"

namespace cudp::privacy::pld {
namespace {

/// Largest relative rounding error of one operation in double.
constexpr double kRounding = 0x1p-53;
/// Upper bound on what underflow can lose when two tables are added: the sum of all products of two
/// probabilities that become 0. There are fewer than 10^8 of them, each below 10^-307.
constexpr double kUnderflow = 1e-299;
/// Largest likelihood ratio in a table. It is so small that products of probabilities that
/// underflow (kUnderflow) change the mean of a sum of ratios by a fraction of less than 10^-90.
constexpr double kMaxRatio = 1e100;
/// Maximum number of tables in the cache (cached_entry()).
constexpr std::size_t kMaxTables = 16;

/// Returns the probability that a standard normal number is above z.
double upper_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

/// Range of likelihood ratios that the points of an AllocationTable cover. Ratios outside of the
/// range have little probability (AllocationGrid::cut). For these the table bounds only their total
/// probability and their part of the mean.
struct Range {
  double low = 0.0, high = 0.0;
};

/// Returns about `points` ascending points from range.low to range.high, at which a distribution is
/// tabulated. One half is evenly spaced on a logarithmic scale, because a privacy loss is a
/// logarithm; the other half is evenly spaced within six standard deviations of the mean, where
/// most of the probability is. mean, deviation: those of the distribution.
std::vector<double> spread(std::size_t points, const Range& range, double mean, double deviation) {
  std::vector<double> result;
  const std::size_t half = std::max<std::size_t>(points / 2, 2);
  const double log_low = std::log(range.low), log_high = std::log(range.high);
  const double from = std::fmax(range.low, mean - 6.0 * deviation);
  const double to = std::fmin(range.high, mean + 6.0 * deviation);
  for (std::size_t i = 0; i < half; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(half - 1);
    result.push_back(std::exp(log_low + share * (log_high - log_low)));
    if (to > from) result.push_back(from + share * (to - from));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

/// Makes the AllocationTable of one step of an epoch, whose likelihood ratio is W = exp(z / sigma -
/// 1 / (2 sigma^2)) with z a standard normal number. The range of z is divided into cells.
class OneStep {
 public:
  OneStep(double sigma, const AllocationGrid& grid) : inverse_(1.0 / sigma) {
    const double reach = std::numbers::sqrt2 * boost::math::erfc_inv(2.0 * grid.cut);
    // Ends of the range of z, which is standard normal. z is below low_ with probability `cut`, and
    // the values of z above high_ contribute `cut` to E[W] = 1.
    low_ = -reach;
    high_ = inverse_ + reach;
    if (!(ratio(high_) < kMaxRatio))
      throw std::domain_error(
          "allocated-gaussian: expected noise whose likelihood ratio is below 1e100, found sigma " +
          number(sigma));
    const double variance = std::expm1(inverse_ * inverse_);
    for (const double w :
         spread(grid.points, {ratio(low_), ratio(high_)}, 1.0, std::sqrt(variance)))
      z_.push_back((std::log(w) + 0.5 * inverse_ * inverse_) / inverse_);
    // Removes neighbouring points that rounding has made equal.
    z_.erase(std::unique(z_.begin(), z_.end(), [](double a, double b) { return !(a < b); }),
             z_.end());
    for (std::size_t i = 0; i + 1 < z_.size(); ++i)
      most_parts_ = std::fmax(most_parts_, parts_of(z_[i], z_[i + 1]));
  }

  AllocationTable table(Side side) const { return side == Side::above ? chords() : merged(); }

 private:
  /// Returns the likelihood ratio W at this z.
  double ratio(double z) const { return std::exp(inverse_ * (z - 0.5 * inverse_)); }

  /// Integrals over one cell [z_i, z_(i + 1)] of a standard normal z with likelihood ratio W
  /// (ratio()). mass: the probability of the cell. left, right: the parts of it that the upper
  /// bound moves to the cell's ends. mean: integral of W / W(z_i).
  struct Cell {
    double mass = 0.0, left = 0.0, right = 0.0, mean = 0.0;
  };

  /// Returns the number of parts that integrate() divides the cell [begin, end] into.
  double parts_of(double begin, double end) const {
    const double far = std::fmax(std::fabs(begin), std::fabs(end));
    const double longest = std::fmin(0.1, std::fmin(1.0 / (1.0 + far), 0.5 / inverse_));
    return std::ceil((end - begin) / longest);
  }
  /// Integrates over a cell, by Gauss' rule with ten points on each of parts_of() parts. The parts
  /// are so short that the rule's error is below the rounding error. This follows from Bernstein's
  /// bound for an ellipse with parameter 20, which reaches five lengths of a part beyond the part:
  /// there the integrands are at most e^10 times as large as inside, and 20^-20 of that is below
  /// 1e-21. All terms are positive, so nothing cancels. begin, end: the cell's range.
  Cell integrate(double begin, double end) const {
    using Rule = boost::math::quadrature::gauss<double, 10>;
    const double width = end - begin;
    const double parts = parts_of(begin, end);
    const double part = width / parts;
    const double to_left = -std::expm1(-inverse_ * width), to_right = std::expm1(inverse_ * width);
    Cell cell;
    for (double i = 0.0; i < parts; i += 1.0)
      for (std::size_t n = 0; n < Rule::abscissa().size(); ++n)
        for (const double sign : {-1.0, 1.0}) {
          const double inside = part * (i + 0.5 * (1.0 + sign * Rule::abscissa()[n]));
          const double z = begin + inside;
          const double weight = 0.5 * part * Rule::weights()[n] * std::exp(-0.5 * z * z);
          cell.mass += weight;
          cell.left += weight * -std::expm1(-inverse_ * std::fmax(width - inside, 0.0)) / to_left;
          cell.right += weight * std::expm1(inverse_ * inside) / to_right;
          cell.mean += weight * std::exp(inverse_ * inside);
        }
    const double scale = 1.0 / std::sqrt(2.0 * std::numbers::pi);
    return {cell.mass * scale, cell.left * scale, cell.right * scale, cell.mean * scale};
  }

  /// Returns a bound on the relative error of the table's probabilities. A relative error r of z
  /// changes the normal density at z by the factor 1 + z^2 r.
  double mass_error() const {
    const double far = std::fmax(std::fabs(low_), high_) + inverse_;
    return kRounding * (400.0 + 20.0 * most_parts_ + 16.0 * far * far);
  }
  double point_error() const {
    return kRounding * (64.0 + 8.0 * inverse_ * (std::fabs(low_) + high_ + inverse_));
  }

  AllocationTable chords() const {
    AllocationTable table;
    table.points = {0.0};
    table.mass = {upper_tail(-z_.front())};
    for (const double z : z_) {
      table.points.push_back(ratio(z));
      table.mass.push_back(0.0);
    }
    // Values below the first ratio, points[1]: their whole probability counts at 0, and in addition
    // as much probability counts at points[1] as keeps their mean.
    table.mass[1] = upper_tail(inverse_ - z_.front()) / table.points[1];
    for (std::size_t i = 0; i + 1 < z_.size(); ++i) {
      const Cell cell = integrate(z_[i], z_[i + 1]);
      table.mass[i + 1] += cell.left;
      table.mass[i + 2] += cell.right;
    }
    table.mass.back() += upper_tail(z_.back());
    table.excess = upper_tail(z_.back() - inverse_);
    table.mass_error = mass_error();
    table.point_error = point_error();
    return table;
  }

  AllocationTable merged() const {
    AllocationTable table;
    const auto add = [&](double mass, double mean) {
      if (!(mass > 0.0 && mean > 0.0)) return;
      table.points.push_back(mean / mass);
      table.mass.push_back(mass);
    };
    add(upper_tail(-z_.front()), upper_tail(inverse_ - z_.front()));
    for (std::size_t i = 0; i + 1 < z_.size(); ++i) {
      const Cell cell = integrate(z_[i], z_[i + 1]);
      add(cell.mass, cell.mean * ratio(z_[i]));
    }
    add(upper_tail(z_.back()), upper_tail(z_.back() - inverse_));
    table.mass_error = mass_error();
    table.point_error = point_error() + 2.0 * mass_error();
    return table;
  }

  double inverse_;  ///< 1 / sigma, with sigma the noise multiplier
  double low_ = 0.0, high_ = 0.0;
  double most_parts_ = 1.0;  ///< largest number of parts of a cell (parts_of); each has 20 terms
  std::vector<double> z_;
};

/// Estimates the range of likelihood ratios that the table of X + Y must cover, with X and Y
/// independent and tables a and b. X + Y is below the range with probability `cut`; values above
/// the range make up the fraction `cut` of its mean. The estimate need not be exact, because add()
/// accounts for everything outside.
Range range_of_sum(const AllocationTable& a, const AllocationTable& b, double cut) {
  struct Lump {
    double low, high, mass, mean;
  };
  const auto lumps = [](const AllocationTable& table) {
    constexpr std::size_t kLumps = 64;
    std::vector<Lump> result;
    const std::size_t n = table.points.size(), each = (n + kLumps - 1) / kLumps;
    for (std::size_t i = 0; i < n; i += each) {
      const std::size_t end = std::min(i + each, n);
      Lump lump{.low = table.points[i], .high = table.points[end - 1], .mass = 0.0, .mean = 0.0};
      for (std::size_t j = i; j < end; ++j) {
        lump.mass += table.mass[j];
        lump.mean += table.mass[j] * table.points[j];
      }
      result.push_back(lump);
    }
    return result;
  };
  constexpr std::size_t kBins = 512;
  const auto first = [](const AllocationTable& t) { return t.points[t.points[0] > 0.0 ? 0 : 1]; };
  const double least = first(a) + first(b), most = a.points.back() + b.points.back();
  const double log_least = std::log(least), width = (std::log(most) - log_least) / kBins;
  if (!(width > 0.0)) return {.low = least, .high = most};
  std::array<double, kBins> mass{}, mean{};
  const auto bin = [&](double s) {
    const double at = (std::log(std::fmax(s, least)) - log_least) / width;
    return std::min(static_cast<std::size_t>(at), kBins - 1);
  };
  double whole = 0.0;
  for (const Lump& x : lumps(a))
    for (const Lump& y : lumps(b)) {
      const double added = x.mean * y.mass + x.mass * y.mean;
      mass[bin(x.low + y.low)] += x.mass * y.mass;
      mean[bin(x.high + y.high)] += added;
      whole += added;
    }
  std::size_t low = 0, high = kBins - 1;
  for (double below = mass[0]; below <= cut && low + 1 < kBins; below += mass[++low]) continue;
  for (double beyond = mean[high]; beyond <= cut * whole && high > low; beyond += mean[--high])
    continue;
  const auto edge = [&](std::size_t i) {
    return std::exp(log_least + width * static_cast<double>(i));
  };
  return {.low = edge(low), .high = std::fmin(edge(high + 1), most)};
}

/// Result of add_pairs(): for each cell, two weighted sums (left and right) over the pairs of
/// points whose sum is in the cell.
struct CellSums {
  std::vector<double> left, right;
};

/// Adds every point x of table a to every point y of table b. The cells are [ends[i], ends[i + 1]);
/// the last one has no upper end. For each cell [low, high), computes two sums (CellSums) over the
/// pairs whose s = x + y is in the cell, with m the probability of the pair:
///   above: left = sum of m (high - s), in the last cell of m; right = sum of m (s - low)
///   below: left = sum of m; right = sum of m s
/// same: whether a and b are the same table; the pairs (i, j) and (j, i) are then visited once,
/// with twice the probability. side: whether the result is part of an upper bound (`above`) or of a
/// lower bound (`below`).
template <Side side>
CellSums add_pairs(const AllocationTable& a, const AllocationTable& b, std::span<const double> ends,
                   bool same) {
  const std::size_t cells = ends.size();
  CellSums sums{std::vector<double>(cells, 0.0), std::vector<double>(cells, 0.0)};
  const std::size_t n = b.points.size();
  const double* const points = b.points.data();
  std::vector<double> weights = b.mass;
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    // If both tables are the same, visits each pair of different points once, with twice its
    // probability. Pairs of a point with itself keep theirs.
    if (same) weights[i] = 0.5 * b.mass[i];
    const double mass = (same ? 2.0 : 1.0) * a.mass[i], shift = a.points[i];
    if (mass == 0.0) continue;
    const double* const weight = weights.data();
    std::size_t j = same ? i : 0;
    auto cell = static_cast<std::size_t>(
        std::upper_bound(ends.begin(), ends.end(), shift + points[j]) - ends.begin() - 1);
    while (j < n) {
      const bool last = cell + 1 == cells;
      const double low = ends[cell];
      const double high = last ? std::numeric_limits<double>::infinity() : ends[cell + 1];
      double left = 0.0, right = 0.0;
      for (; j < n; ++j) {
        const double sum = shift + points[j];
        if (!(sum < high)) break;
        if constexpr (side == Side::above) {
          left += last ? weight[j] : weight[j] * (high - sum);
          right += weight[j] * (sum - low);
        } else {
          left += weight[j];
          right += weight[j] * sum;
        }
      }
      sums.left[cell] += mass * left;
      sums.right[cell] += mass * right;
      ++cell;
    }
  }
  return sums;
}

double total(const AllocationTable& table) {
  double sum = 0.0;
  for (const double mass : table.mass) sum += mass;
  return sum;
}

/// Returns the table of X + Y, for independent X and Y with tables a and b. same: whether a and b
/// are the same table. terms: number of ratios W (one per step) in X + Y, and so its mean, because
/// E[W] = 1. variance: variance of one W. side: whether the result is an upper or a lower bound.
/// grid: accuracy of the table.
AllocationTable add(const AllocationTable& a, const AllocationTable& b, bool same, Side side,
                    double terms, double variance, const AllocationGrid& grid) {
  const Range range = range_of_sum(a, b, grid.cut);
  std::vector<double> ends{0.0};
  const std::vector<double> inner = spread(grid.points, range, terms, std::sqrt(terms * variance));
  ends.insert(ends.end(), inner.begin(), inner.end());
  AllocationTable table;
  const auto pairs = static_cast<double>(a.points.size() + b.points.size());
  // A cell's sum adds at most one partial sum for each point of a, and a partial sum adds at most
  // one product for each point of b. So at most `pairs` additions round a product. A point of the
  // result is rounded as a sum of two points; in a lower bound also as a mean, whose error is added
  // below.
  const double rounding = kRounding * (pairs + 32.0);
  table.mass_error = (a.mass_error + b.mass_error + rounding) * (1.0 + 1e-6);
  table.point_error = std::fmax(a.point_error, b.point_error) + 4.0 * kRounding;
  if (side == Side::above) {
    const CellSums sums = add_pairs<Side::above>(a, b, ends, same);
    table.points = ends;
    table.mass.assign(ends.size(), 0.0);
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      const double width = ends[i + 1] - ends[i];
      table.mass[i] += sums.left[i] / width;
      table.mass[i + 1] += sums.right[i] / width;
    }
    table.mass.back() += sums.left.back();
    double least_width = 1.0;
    for (std::size_t i = 0; i + 1 < ends.size(); ++i)
      least_width = std::fmin(least_width, ends[i + 1] - ends[i]);
    // Upper bound on the mass that underflow has lost, at points up to the last one.
    const double lost = kUnderflow / least_width;
    table.excess =
        sums.right.back() + a.excess * total(b) + b.excess * total(a) + lost * ends.back();
    table.mass.front() += lost;
  } else {
    const CellSums sums = add_pairs<Side::below>(a, b, ends, same);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      // Skips cells with tiny sums, of which products lost to underflow might change the mean.
      if (!(sums.left[i] > 1e-280 && sums.right[i] > 1e-280)) continue;
      table.points.push_back(sums.right[i] / sums.left[i]);
      table.mass.push_back(sums.left[i]);
    }
    table.point_error += 2.0 * rounding;
  }
  return table;
}

/// Entry of the cache of tables: an AllocationTable that the first thread that needs it computes,
/// while others wait.
struct CachedTable {
  AllocatedGaussian epoch;
  Side side;
  AllocationGrid grid;
  std::mutex computing;
  std::shared_ptr<const AllocationTable> table;
};

/// Returns the cache's entry for this table; makes an empty one if there is none, and then drops
/// the oldest entry if there are more than kMaxTables. side: whether the table is an upper or a
/// lower bound. grid: its accuracy.
std::shared_ptr<CachedTable> cached_entry(const AllocatedGaussian& epoch, Side side,
                                          const AllocationGrid& grid) {
  static std::mutex guard;
  static std::deque<std::shared_ptr<CachedTable>> cache;
  const std::lock_guard lock(guard);
  const auto found = std::find_if(cache.begin(), cache.end(), [&](const auto& one) {
    return one->epoch == epoch && one->side == side && one->grid == grid;
  });
  if (found != cache.end()) return *found;
  cache.push_front(std::make_shared<CachedTable>());
  cache.front()->epoch = epoch;
  cache.front()->side = side;
  cache.front()->grid = grid;
  const std::shared_ptr<CachedTable> made = cache.front();
  if (cache.size() > kMaxTables) cache.pop_back();
  return made;
}

std::shared_ptr<const AllocationTable> cached_table(const AllocatedGaussian& epoch, Side side,
                                                    const AllocationGrid& grid) {
  const std::shared_ptr<CachedTable> entry = cached_entry(epoch, side, grid);
  const std::lock_guard lock(entry->computing);
  if (!entry->table)
    entry->table = std::make_shared<const AllocationTable>(allocation_table(epoch, side, grid));
  return entry->table;
}

}  // namespace

AllocationTable allocation_table(const AllocatedGaussian& epoch, Side side,
                                 const AllocationGrid& grid) {
  check(epoch);
  if (!(grid.points >= 16 && grid.points <= 20000))
    throw std::invalid_argument("points: expected 16 to 20000, found " +
                                std::to_string(grid.points));
  if (!(grid.cut >= 1e-130 && grid.cut <= 1e-3))
    throw std::invalid_argument("cut: expected a number in [1e-130, 1e-3], found " +
                                number(grid.cut));
  const double variance = std::expm1(1.0 / epoch.sigma / epoch.sigma);
  const AllocationTable one = OneStep(epoch.sigma, grid).table(side);
  AllocationTable table = one;
  double terms = 1.0;
  // Makes the table of the sum of `steps` ratios by doubling. For each binary digit of the number
  // of steps after the highest one, doubles the sum, and adds one ratio if the digit is 1.
  int digit = 63;
  while (((epoch.steps >> digit) & 1) == 0) --digit;
  while (digit-- > 0) {
    terms *= 2.0;
    table = add(table, table, true, side, terms, variance, grid);
    if (((epoch.steps >> digit) & 1) == 0) continue;
    terms += 1.0;
    table = add(table, one, false, side, terms, variance, grid);
  }
  return table;
}

PrivacyLoss allocation_loss(const AllocatedGaussian& epoch, Change change, std::uint64_t k,
                            Side side, const AllocationGrid& grid) {
  check(epoch);
  if (change == Change::replace || k != 1)
    throw std::domain_error(
        "allocated-gaussian: expected one example, added or removed (no bound is known for "
        "others), found " +
        (change == Change::replace ? std::string("replacement")
                                   : "a group of " + std::to_string(k)));
  const std::shared_ptr<const AllocationTable> shared_table = cached_table(epoch, side, grid);
  const AllocationTable& table = *shared_table;
  const auto steps = static_cast<double>(epoch.steps);
  const double outward = side == Side::above ? 1.0 : -1.0;
  const double mass_factor = 1.0 + outward * (table.mass_error + 8.0 * kRounding);
  const double point_factor = 1.0 + outward * (table.point_error + 8.0 * kRounding);
  const double shift = outward * 2.0 * (table.point_error + 8.0 * kRounding);
  PrivacyLoss loss;
  if (change == Change::remove && side == Side::above)
    loss.infinite = std::fmin(table.excess / steps * mass_factor * point_factor, 1.0);
  for (std::size_t i = 0; i < table.points.size(); ++i) {
    const double point = table.points[i], mass = table.mass[i] * mass_factor;
    if (!(mass > 0.0)) continue;
    if (point == 0.0) {  // impossible under P
      if (change == Change::add && side == Side::above) loss.infinite += mass;
      continue;
    }
    const double log_ratio = std::log(point / steps);
    if (change == Change::remove)
      loss.atoms.push_back({log_ratio + shift, mass * (point / steps) * point_factor});
    else
      loss.atoms.push_back({-log_ratio + shift, mass});
  }
  return loss;
}

std::vector<Release> allocated_uses(std::uint64_t steps, std::uint64_t uses, double sigma,
                                    std::uint64_t epochs) {
  if (!(uses >= 1 && uses <= steps))
    throw std::invalid_argument("uses: expected 1 to the " + std::to_string(steps) +
                                " steps of an epoch, found " + std::to_string(uses));
  const std::uint64_t length = steps / uses, longer = steps % uses;
  std::vector<Release> parts = {{AllocatedGaussian{length, sigma}, (uses - longer) * epochs}};
  if (longer > 0) parts.push_back({AllocatedGaussian{length + 1, sigma}, longer * epochs});
  return parts;
}

}  // namespace cudp::privacy::pld
