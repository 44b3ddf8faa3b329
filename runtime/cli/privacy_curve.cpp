#include "runtime/cli/privacy_curve.hpp"

#include <algorithm>
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

/// Lines of one picture, each with its points.
class Lines {
 public:
  void add(const std::string& title, const char* style,
           const std::vector<std::pair<double, double>>& points) {
    if (points.empty()) return;
    const std::string name = fmt::format("$line{}", lines_++);
    data_ += name + " << EOD\n";
    for (const auto& [x, y] : points) data_ += fmt::format("{} {}\n", x, y);
    data_ += "EOD\n";
    plots_ += fmt::format("{}{} using 1:2 with {} title {}", plots_.empty() ? "plot " : ", ", name,
                          style, gnuplot_text(title));
  }
  std::string script() const { return data_ + plots_ + "\n"; }

 private:
  int lines_ = 0;
  std::string data_, plots_;
};

constexpr const char* kTight = "linespoints pt 7 ps 0.6 lw 2 lc rgb '#0060ad'";
constexpr const char* kTightLine = "lines lw 2 lc rgb '#0060ad'";
constexpr const char* kLoose = "lines lw 2 dt 2 lc rgb '#dd5511'";
constexpr const char* kEstimate = "lines lw 2 dt 3 lc rgb '#808080'";

std::string group_script(const std::vector<GroupRow>& rows, double delta) {
  const std::uint64_t largest = rows.back().group;
  std::vector<std::pair<double, double>> tight, vadhan, linear;
  for (const GroupRow& row : rows) {
    const auto k = static_cast<double>(row.group);
    tight.emplace_back(k, row.bound.epsilon);
    linear.emplace_back(k, row.linear);
    if (row.vadhan) vadhan.emplace_back(k, *row.vadhan);
  }
  Lines lines;
  lines.add("this accountant", kTight, tight);
  lines.add("Vadhan's lemma", kLoose, vadhan);
  lines.add("k times epsilon of one (a lower limit of the lemma)", kEstimate, linear);
  // A lemma that leaves the picture shall not flatten the rest.
  return fmt::format(
             "set key top left\nset xlabel 'group size'\nset ylabel 'epsilon at delta = {:g}'\n"
             "set xrange [1:{}]\nset yrange [0:{}]\n",
             delta, largest, 2.0 * tight.back().second) +
         lines.script();
}

/// delta(epsilon) by one accountant; nothing where it has no answer for these steps.
std::vector<std::pair<double, double>> deltas(const privacy::Composition& composition,
                                              privacy::AccountantOptions options,
                                              privacy::AccountantKind kind,
                                              const std::vector<double>& epsilons) {
  options.kind = kind;
  std::vector<std::pair<double, double>> points;
  try {
    privacy::Accountant accountant(composition, options);
    for (const double e : epsilons) {
      const double found = accountant.delta(e).delta;
      if (found > 1e-16) points.emplace_back(e, found);
    }
  } catch (const std::domain_error&) {
    points.clear();
  }
  return points;
}

std::string delta_script(const privacy::Composition& composition, double delta,
                         const privacy::AccountantOptions& options) {
  constexpr int kPoints = 60;
  const double max_epsilon = 1.5 * privacy::Accountant(composition, options).epsilon(delta).epsilon;
  std::vector<double> epsilons;
  for (int i = 0; i <= kPoints; ++i) epsilons.push_back(max_epsilon * i / kPoints);
  Lines lines;
  const bool renyi = options.kind == privacy::AccountantKind::rdp;
  if (!renyi)
    lines.add("privacy loss distribution", kTightLine,
              deltas(composition, options, privacy::AccountantKind::best, epsilons));
  lines.add("Renyi divergences", renyi ? kTightLine : kLoose,
            deltas(composition, options, privacy::AccountantKind::rdp, epsilons));
  std::vector<std::pair<double, double>> estimate;
  try {
    for (const double e : epsilons)
      estimate.emplace_back(
          e,
          privacy::gdp_estimate_delta(composition.releases, e, composition.group).estimated_delta);
  } catch (const std::domain_error&) {
    estimate.clear();  // no estimate for such steps
  }
  std::erase_if(estimate, [](const auto& p) { return !(p.second > 1e-16); });
  lines.add("Gaussian DP (an estimate, no bound)", kEstimate, estimate);
  return "set key top right\nset xlabel 'epsilon'\nset ylabel 'delta'\nset logscale y\n"
         "set format y '10^{%L}'\nset terminal pngcairo enhanced\n"
         "set xrange [0:*]\n" +
         lines.script();
}

}  // namespace

std::vector<GroupRow> group_rows(const privacy::Composition& composition, std::uint64_t largest,
                                 double delta, const privacy::AccountantOptions& options,
                                 Busy& busy) {
  std::vector<GroupRow> rows;
  for (std::uint64_t k = 1; k <= largest; ++k) {
    privacy::PrivacyBound bound =
        privacy::group_epsilons(composition, std::span(&k, 1), delta, options).front();
    const double one = rows.empty() ? bound.epsilon : rows.front().bound.epsilon;
    rows.push_back({.group = k,
                    .bound = std::move(bound),
                    .vadhan = privacy::vadhan_epsilon(composition, k, delta, options),
                    .linear = static_cast<double>(k) * one});
    busy.done(static_cast<double>(k) / static_cast<double>(largest));
  }
  return rows;
}

namespace {

void draw(const std::string& title, const std::string& script,
          const std::filesystem::path& picture) {
  if (!run_gnuplot(gnuplot_header(title) + script, picture))
    throw Error(picture.string() +
                ": expected gnuplot to draw this picture, found that it did not");
}

}  // namespace

void draw_group_curve(const std::vector<GroupRow>& rows, double delta,
                      const std::filesystem::path& picture) {
  draw("privacy of groups", group_script(rows, delta), picture);
}

void draw_privacy_curve(const privacy::Composition& composition, double delta,
                        const std::filesystem::path& picture,
                        const privacy::AccountantOptions& options) {
  draw("privacy by accountant", delta_script(composition, delta, options), picture);
}

}  // namespace cudp
