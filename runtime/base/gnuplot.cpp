#include "runtime/base/gnuplot.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/environment.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"

#include "picture_style.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Writes the script to an in-memory file (memfd) and rewinds it. Returns whether all of it was
/// written.
bool write_script(int file, std::string_view script) {
  while (!script.empty()) {
    const ssize_t n = ::write(file, script.data(), script.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    script.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::lseek(file, 0, SEEK_SET) == 0;
}

/// Starts gnuplot with the file `script` as its standard input and the file `picture` as its
/// standard output. Returns -1 if gnuplot is missing.
pid_t start_gnuplot(int script, int picture) {
  posix_spawn_file_actions_t files;
  if (::posix_spawn_file_actions_init(&files) != 0) return -1;
  ::posix_spawn_file_actions_adddup2(&files, picture, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, script, STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // gnuplot reads its standard input one byte at a time, but a file in large pieces.
  std::string name = "gnuplot";
  const std::shared_ptr<const Environment> environment = current_environment();
  const std::string program = environment->find_program(name);
  std::string input = ::access("/proc/self/fd", F_OK) == 0 ? "/proc/self/fd/0" : "-";
  std::array<char*, 3> words = {name.data(), input.data(), nullptr};
  pid_t child = -1;
  if (program.empty() || ::posix_spawn(&child, program.c_str(), &files, nullptr, words.data(),
                                       environment->variables().data()) != 0)
    child = -1;
  ::posix_spawn_file_actions_destroy(&files);
  return child;
}

}  // namespace

std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

std::string gnuplot_header(const std::string& title, PictureSize size) {
  std::string script =
      "width = " + std::to_string(size.width) + "\nheight = " + std::to_string(size.height) + "\n";
  for (const EmbeddedText& style : picture_style()) script += style.text;
  return script + "set title " + gnuplot_text(title) + "\n";
}

/// A gnuplot process that draws one picture.
class Pictures::Drawing {
  /// A file descriptor, closed by the destructor.
  class Descriptor {
   public:
    explicit Descriptor(int file) : file_(file) {}
    ~Descriptor() {
      if (file_ >= 0) ::close(file_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int get() const { return file_; }

   private:
    int file_;
  };

  /// A temporary file into which gnuplot draws, in the folder where the picture will be. gnuplot
  /// gets the open file and not its path: if it outlives this program, which was killed, it cannot
  /// make the file again after a resumed run has removed it. The destructor removes the file unless
  /// it was moved to the picture's path.
  class Temporary {
   public:
    Temporary(const fs::path& picture, unsigned mode)
        : path_(picture.parent_path() / std::string(".")
                                            .append(picture.filename().string())
                                            .append(".new-")
                                            .append(std::to_string(::getpid()))),
          unfinished_(path_),
          file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)) {
      if (file_.get() < 0 || ::fchmod(file_.get(), mode) != 0)
        throw Error(picture.string() + ": cannot write it: " + std::strerror(errno));
    }
    ~Temporary() {
      std::error_code ignored;
      fs::remove(path_, ignored);
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;

    const fs::path& path() const { return path_; }
    int file() const { return file_.get(); }

   private:
    fs::path path_;
    UnfinishedFile unfinished_;
    Descriptor file_;
  };

 public:
  Drawing(const std::string& script, fs::path picture, unsigned mode)
      : picture_(std::move(picture)), made_(picture_, mode) {
    const Descriptor text(::memfd_create("gnuplot script", MFD_CLOEXEC));
    if (text.get() < 0 || !write_script(text.get(), script)) return;
    const FilesInChange lock;
    child_ = start_gnuplot(text.get(), made_.file());
    if (child_ > 0) unfinished_.emplace(child_);
  }
  ~Drawing() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    (void)succeeded();
  }
  Drawing(const Drawing&) = delete;
  Drawing& operator=(const Drawing&) = delete;

  /// Waits until gnuplot has drawn the picture. Returns whether the picture is complete at its
  /// path.
  bool finish() {
    std::error_code error;
    if (!succeeded() || fs::file_size(made_.path(), error) == 0 || error) return false;
    const FilesInChange lock;
    fs::rename(made_.path(), picture_, error);
    if (error) throw Error(picture_.string() + ": cannot rename to it: " + error.message());
    return true;
  }

 private:
  /// Waits until the gnuplot process has ended, if there is one. Returns whether it succeeded.
  bool succeeded() {
    if (child_ <= 0) return false;
    // A signal may end this process during the wait; EndOnSignal then kills the child by its
    // process id. WNOWAIT keeps the ended child as a zombie, so that no other process gets this id
    // before unfinished_ is reset below.
    siginfo_t about{};
    while (::waitid(P_PID, static_cast<id_t>(child_), &about, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
    const FilesInChange lock;
    int status = -1;
    const pid_t ended = ::waitpid(std::exchange(child_, -1), &status, WNOHANG);
    unfinished_.reset();
    return ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  fs::path picture_;
  Temporary made_;
  pid_t child_ = -1;
  std::optional<UnfinishedChild> unfinished_;
};

Pictures::Pictures() = default;
Pictures::~Pictures() = default;

void Pictures::start(const std::string& script, const fs::path& picture, unsigned mode) {
  std::error_code error;
  if (fs::exists(picture, error) && !fs::is_regular_file(picture, error))
    throw Error(picture.string() + ": expected a file for a picture, found something else");
  drawings_.push_back(std::make_unique<Drawing>(script, picture, mode));
}

bool Pictures::finish() {
  bool drawn = true;
  for (const std::unique_ptr<Drawing>& drawing : drawings_) drawn = drawing->finish() && drawn;
  drawings_.clear();
  return drawn;
}

bool run_gnuplot(const std::string& script, const fs::path& picture, unsigned mode) {
  Pictures one;
  one.start(script, picture, mode);
  return one.finish();
}

}  // namespace cudp
