#include "runtime/base/gnuplot.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// An empty temporary file next to the future picture. The destructor removes it unless it was
/// moved.
class TemporaryPicture {
 public:
  TemporaryPicture(const fs::path& picture, unsigned mode)
      : path_(picture.parent_path() / std::string(".")
                                          .append(picture.filename().string())
                                          .append(".new-")
                                          .append(std::to_string(::getpid()))),
        unfinished_(path_) {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (file < 0 || ::fchmod(file, mode) != 0)
      throw Error(picture.string() + ": cannot write it: " + std::strerror(errno));
    ::close(file);
  }
  ~TemporaryPicture() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TemporaryPicture(const TemporaryPicture&) = delete;
  TemporaryPicture& operator=(const TemporaryPicture&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  Unfinished unfinished_;
};

/// Makes a write to a broken pipe fail, instead of ending the program, while it lives.
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

std::string gnuplot_header(const std::string& title) {
  return R"(set terminal pngcairo size 960,600 font 'Sans,12' noenhanced
set border 11 lc rgb '#808080'
set grid lc rgb '#e0e0e0'
set key box lc rgb '#c0c0c0' opaque
set tics nomirror textcolor rgb '#404040'
)" + ("set title " + gnuplot_text(title)) +
         "\n";
}

bool run_gnuplot(const std::string& script, const std::filesystem::path& picture, unsigned mode) {
  std::error_code error;
  if (fs::exists(picture, error) && !fs::is_regular_file(picture, error))
    throw Error(picture.string() + ": expected a file for a picture, found something else");
  // gnuplot writes to stdout if it cannot open its output file, so the file is created for it
  // first.
  const TemporaryPicture made(picture, mode);
  const std::string output = "set output " + gnuplot_text(made.path().string()) + "\n";
  const IgnoreBrokenPipe guard;
  std::FILE* gnuplot = ::popen("gnuplot >/dev/null 2>&1", "w");
  if (gnuplot == nullptr) return false;
  bool drawn = true;
  for (const std::string& part : {output, script})
    drawn = std::fwrite(part.data(), 1, part.size(), gnuplot) == part.size() && drawn;
  drawn = ::pclose(gnuplot) == 0 && drawn;
  if (!drawn || fs::file_size(made.path(), error) == 0 || error) return false;
  const FilesInChange lock;
  fs::rename(made.path(), picture, error);
  if (error) throw Error(picture.string() + ": cannot rename to it: " + error.message());
  return true;
}

}  // namespace cudp
