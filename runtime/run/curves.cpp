#include <csignal>
#include <cstdio>
#include <string>

#include <spdlog/fmt/fmt.h>

#include "runtime/run/metrics.hpp"

namespace cudp {
namespace {

/// A text in gnuplot's single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

std::string script(const std::vector<MetricsRow>& rows, const std::string& title,
                   const std::filesystem::path& picture) {
  std::string s = R"(set terminal pngcairo size 960,600 font 'Sans,12' noenhanced
set border 11 lc rgb '#808080'
set grid lc rgb '#e0e0e0'
set key bottom right box lc rgb '#c0c0c0' opaque
set tics nomirror textcolor rgb '#404040'
set y2tics
set xlabel 'epoch'
set ylabel 'test accuracy (%)'
set y2label 'epsilon spent'
set xrange [0:*]
set y2range [0:*]
)";
  s += "set title " + quoted(title) + "\nset output " + quoted(picture.string()) + "\n";
  s += "$rows << EOD\n";
  for (const MetricsRow& r : rows)
    s += fmt::format("{} {} {}\n", r.epoch, 100.0 * r.test_accuracy, r.epsilon);
  s += "EOD\n";
  const char* style = rows.size() > 1 ? "lines" : "points";
  s += fmt::format(
      "plot $rows using 1:2 with {0} lw 2 lc rgb '#0060ad' title 'test accuracy', "
      "$rows using 1:3 axes x1y2 with {0} lw 2 dt 2 lc rgb '#dd5511' title 'epsilon'\n",
      style);
  return s;
}

/// While a pipe may break, a write to it should fail and not end the program.
class IgnoreBrokenPipe {
 public:
  IgnoreBrokenPipe() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoreBrokenPipe() { (void)std::signal(SIGPIPE, before_); }
  IgnoreBrokenPipe(const IgnoreBrokenPipe&) = delete;
  IgnoreBrokenPipe& operator=(const IgnoreBrokenPipe&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace

bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture) {
  if (rows.empty()) return false;
  const IgnoreBrokenPipe guard;
  std::FILE* gnuplot = ::popen("gnuplot 2>/dev/null", "w");
  if (gnuplot == nullptr) return false;
  const std::string text = script(rows, title, picture);
  const bool written = std::fwrite(text.data(), 1, text.size(), gnuplot) == text.size();
  const bool drawn = ::pclose(gnuplot) == 0;
  return written && drawn && std::filesystem::exists(picture);
}

}  // namespace cudp
