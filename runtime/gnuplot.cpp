#include "runtime/gnuplot.hpp"

#include <csignal>
#include <cstdio>

namespace cudp {
namespace {

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

std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

std::string gnuplot_header(const std::string& title, const std::filesystem::path& picture) {
  return R"(set terminal pngcairo size 960,600 font 'Sans,12' noenhanced
set border 11 lc rgb '#808080'
set grid lc rgb '#e0e0e0'
set key box lc rgb '#c0c0c0' opaque
set tics nomirror textcolor rgb '#404040'
)" + ("set title " + gnuplot_text(title)) +
         "\nset output " + gnuplot_text(picture.string()) + "\n";
}

bool run_gnuplot(const std::string& script, const std::filesystem::path& picture) {
  const IgnoreBrokenPipe guard;
  std::FILE* gnuplot = ::popen("gnuplot 2>/dev/null", "w");
  if (gnuplot == nullptr) return false;
  const bool written = std::fwrite(script.data(), 1, script.size(), gnuplot) == script.size();
  const bool drawn = ::pclose(gnuplot) == 0;
  return written && drawn && std::filesystem::exists(picture);
}

}  // namespace cudp
