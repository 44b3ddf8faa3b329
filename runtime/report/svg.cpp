#include <algorithm>
#include <cmath>
#include <limits>

#include <spdlog/fmt/fmt.h>

#include "runtime/report/document.hpp"
#include "runtime/report/escape.hpp"

namespace cudp::page {
namespace {

/// Width and height of a chart without its legend, in the units of the SVG.
constexpr double kWidth = 420.0, kHeight = 260.0;
constexpr double kLeft = 58.0, kRight = 14.0, kBottom = 44.0;  // margins around the axes
/// Height of a line of the legend.
constexpr double kLegendLine = 18.0;
/// Number of different colours in which curves are drawn; further curves use them again.
constexpr std::size_t kColours = 6;
constexpr std::size_t kMarked = 24;  // a curve of up to this many points has a dot at each

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
};

/// Positions of the labels on an axis: multiples of 1, 2, 2.5 or 5 times a power of ten.
struct Ticks {
  double first = 0.0;
  double step = 1.0;
  int count = 0;

  double at(int i) const { return first + i * step; }
  double last() const { return at(count - 1); }
};

Ticks ticks_of(double low, double high, int wanted) {
  const double raw = (high - low) / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10.0 * power;
  for (const double m : {1.0, 2.0, 2.5, 5.0})
    if (raw <= m * power * (1.0 + 1e-9)) {
      step = m * power;
      break;
    }
  Ticks t{.first = std::floor(low / step + 1e-9) * step, .step = step, .count = 0};
  t.count = static_cast<int>(std::ceil((high - t.first) / step - 1e-9)) + 1;
  return t;
}

/// Returns the label of tick i. A value that is zero up to rounding is shown as "0".
std::string label(const Ticks& t, int i) {
  const double value = t.at(i);
  return std::abs(value) < 1e-6 * t.step ? "0" : fmt::format("{:.6g}", value);
}

/// Widens a range whose ends are equal, or that has no values, so that an axis can show it.
void widen(Range& r) {
  if (!(r.low <= r.high)) r = {0.0, 1.0};
  if (r.high - r.low > 1e-12 * std::max(std::abs(r.low), std::abs(r.high))) return;
  const double pad = r.high == 0.0 ? 1.0 : 0.1 * std::abs(r.high);
  r.low -= pad;
  r.high += pad;
}

bool is_drawn(const std::pair<double, double>& p) {
  constexpr double kLargest = 1e15;
  return std::abs(p.first) < kLargest && std::abs(p.second) < kLargest;  // false for NaN
}

}  // namespace

std::string to_svg(const Chart& chart) {
  Range xs, ys;
  for (const Curve& c : chart.curves)
    for (const auto& p : c.points)
      if (is_drawn(p)) {
        xs.include(p.first);
        ys.include(p.second);
      }
  if (xs.low <= xs.high) xs.include(0.0);
  widen(xs);
  if (chart.y_min) ys.include(*chart.y_min);
  widen(ys);
  if (chart.y_min) ys.low = *chart.y_min;
  const Ticks x_ticks = ticks_of(xs.low, xs.high, 5), y_ticks = ticks_of(ys.low, ys.high, 4);

  const double top = 12.0 + kLegendLine * static_cast<double>(chart.curves.size());
  const double height = kHeight + kLegendLine * static_cast<double>(chart.curves.size());
  const double right = kWidth - kRight, bottom = height - kBottom;
  const auto x_at = [&](double x) {
    return kLeft + (right - kLeft) * (x - x_ticks.first) / (x_ticks.last() - x_ticks.first);
  };
  const auto y_at = [&](double y) {
    return bottom - (bottom - top) * (y - y_ticks.first) / (y_ticks.last() - y_ticks.first);
  };

  std::string s = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n",
      kWidth, height, html(chart.title + ". " + chart.description));
  for (int i = 0; i < y_ticks.count; ++i) {
    const double y = y_at(y_ticks.at(i));
    s += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, y, right, y, kLeft - 6.0, y + 4.5, label(y_ticks, i));
  }
  for (int i = 0; i < x_ticks.count; ++i) {
    const double x = x_at(x_ticks.at(i));
    s += fmt::format(
        "<line class=\"axis\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        x, bottom, x, bottom + 4.0, x, bottom + 17.0, label(x_ticks, i));
  }
  s += fmt::format(
      "<path class=\"axis\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n"
      "<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n"
      "<text class=\"name\" text-anchor=\"middle\" transform=\"translate(14 {:.1f}) "
      "rotate(-90)\">{}</text>\n",
      kLeft, top, bottom, right, 0.5 * (kLeft + right), height - 8.0, html(chart.x),
      0.5 * (top + bottom), html(chart.y));
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& c = chart.curves[i];
    const std::string look = fmt::format("c{}{}", i % kColours, c.dashed ? " dashed" : "");
    std::string path, dots;
    std::size_t drawn = 0;
    bool begins = true;
    for (const auto& p : c.points) {
      if (!is_drawn(p)) {
        begins = true;
        continue;
      }
      path += fmt::format("{}{:.1f} {:.1f}", begins ? 'M' : 'L', x_at(p.first), y_at(p.second));
      begins = false;
      ++drawn;
    }
    if (!c.dashed && drawn <= kMarked)
      for (const auto& p : c.points)
        if (is_drawn(p))
          dots += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", look,
                              x_at(p.first), y_at(p.second));
    if (drawn > 0) s += fmt::format("<path class=\"line {}\" d=\"{}\"/>{}\n", look, path, dots);
    const double y = 12.0 + kLegendLine * static_cast<double>(i);
    s += fmt::format(
        "<path class=\"line {}\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>"
        "<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        look, kLeft, y - 4.0, kLeft + 26.0, kLeft + 33.0, y, html(c.name));
  }
  return s + "</svg>\n";
}

}  // namespace cudp::page
