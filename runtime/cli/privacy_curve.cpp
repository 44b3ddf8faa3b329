#include "runtime/cli/privacy_curve.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "privacy/rdp/gaussian.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/gnuplot.hpp"

namespace cudp {
namespace {

using Points = std::vector<std::pair<double, double>>;

/// Collects the curves of a plot: their data and styles, as text for a gnuplot script.
class Lines {
 public:
  void add(const std::string& title, const char* style, const Points& points) {
    if (points.empty()) return;
    const std::string name = fmt::format("$line{}", lines_++);
    data_ += name + " << EOD\n";
    for (const auto& [x, y] : points) data_ += fmt::format("{} {}\n", x, y);
    data_ += "EOD\n";
    plots_ += fmt::format("{}{} using 1:2 with {} title {}", plots_.empty() ? "plot " : ", ", name,
                          style, gnuplot_text(title));
  }
  /// Draws the curves as a PNG file. axes: gnuplot commands that set up the axes. Throws Error if
  /// gnuplot fails.
  void draw(const std::string& title, const std::string& axes,
            const std::filesystem::path& picture) const {
    if (!run_gnuplot(gnuplot_header(title) + axes + data_ + plots_ + "\n", picture))
      throw Error(picture.string() +
                  ": expected gnuplot to draw this picture, found that it did not");
  }

 private:
  int lines_ = 0;
  std::string data_, plots_;
};

constexpr const char* kTight = "linespoints lt 1";
constexpr const char* kTightLine = "lines lt 1";
constexpr const char* kLoose = "lines lt 2 dt 2";
constexpr const char* kEstimate = "lines lt 9 dt 3";

/// Returns the points (e, delta(e)) of a curve for each e in `epsilons`, without points whose delta
/// is too small to be drawn. Returns no points if delta() throws std::domain_error, because the
/// accountant has no bound for these releases.
template <class Delta>
Points points_of(const std::vector<double>& epsilons, Delta delta) {
  Points points;
  try {
    for (const double e : epsilons)
      if (const double found = delta(e); found > 1e-16) points.emplace_back(e, found);
  } catch (const std::domain_error&) {
    points.clear();
  }
  return points;
}

}  // namespace

std::vector<GroupRow> group_rows(const privacy::Composition& composition, std::uint64_t largest,
                                 double delta, const privacy::AccountantOptions& options,
                                 Busy& busy) {
  std::vector<GroupRow> rows;
  for (std::uint64_t k = 1; k <= largest; ++k) {
    const privacy::PrivacyBound bound =
        privacy::group_epsilons(composition, std::span(&k, 1), delta, options).front();
    const double one = rows.empty() ? bound.epsilon : rows.front().bound.epsilon;
    rows.push_back({.group = k,
                    .bound = bound,
                    .vadhan = privacy::vadhan_epsilon(composition, k, delta, options),
                    .linear = static_cast<double>(k) * one});
    busy.done(static_cast<double>(k) / static_cast<double>(largest));
  }
  return rows;
}

void draw_group_curve(const std::vector<GroupRow>& rows, double delta,
                      const std::filesystem::path& picture) {
  Points tight, vadhan, linear;
  bool all_positive = true;
  const auto add = [&](Points& points, std::uint64_t group, double epsilon) {
    if (!std::isfinite(epsilon)) return;
    points.emplace_back(static_cast<double>(group), epsilon);
    all_positive = all_positive && epsilon > 0.0;
  };
  for (const GroupRow& row : rows) {
    add(tight, row.group, row.bound.epsilon);
    add(linear, row.group, row.linear);
    if (row.vadhan) add(vadhan, row.group, *row.vadhan);
  }
  Lines lines;
  lines.add("this accountant", kTight, tight);
  lines.add("Vadhan's lemma", kLoose, vadhan);
  lines.add("k times epsilon of one", kEstimate, linear);
  // The axis is logarithmic if all values are positive: the values of Vadhan's lemma are larger by
  // powers of ten, and would flatten the other curves on a linear axis.
  lines.draw("Privacy of groups",
             fmt::format("set xlabel 'group size k [examples or units]'\nset ylabel 'epsilon at "
                         "delta = {:g}'\nset xrange [1:{}]\n{}",
                         delta, std::max<std::uint64_t>(rows.back().group, 2),
                         all_positive ? "set logscale y\n" : "set yrange [0:*]\n"),
             picture);
}

void draw_privacy_curve(const privacy::Composition& composition, double delta,
                        const std::filesystem::path& picture,
                        const privacy::AccountantOptions& options) {
  constexpr int kPoints = 60;
  const double max_epsilon = 1.5 * privacy::Accountant(composition, options).epsilon(delta).epsilon;
  std::vector<double> epsilons;
  for (int i = 0; i <= kPoints; ++i) epsilons.push_back(max_epsilon * i / kPoints);
  Lines lines;
  const auto add = [&](const char* title, const char* style, privacy::AccountantKind kind) {
    privacy::AccountantOptions other = options;
    other.kind = kind;
    std::optional<privacy::Accountant> accountant;
    lines.add(title, style, points_of(epsilons, [&](double e) {
                if (!accountant) accountant.emplace(composition, other);
                return accountant->delta(e).delta;
              }));
  };
  const bool renyi = options.kind == privacy::AccountantKind::rdp;
  if (!renyi) add("privacy loss distribution", kTightLine, privacy::AccountantKind::best);
  add("Renyi divergences", renyi ? kTightLine : kLoose, privacy::AccountantKind::rdp);
  lines.add("Gaussian DP, an estimate", kEstimate, points_of(epsilons, [&](double e) {
              return privacy::gdp_estimate_delta(composition.releases, e, composition.group)
                  .estimated_delta;
            }));
  lines.draw("Privacy by accountant",
             "set xlabel 'epsilon'\nset ylabel 'delta'\nset logscale y\nset format y '%.0e'\n"
             "set xrange [0:*]\n",
             picture);
}

}  // namespace cudp
