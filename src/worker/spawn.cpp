// SPDX-License-Identifier: Apache-2.0
// Process::spawn: everything is prepared before the fork, since a child of a process with threads may only use
// async-signal-safe calls until exec.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "common/confine.hpp"
#include "worker/left_behind.hpp"
#include "worker/marked.hpp"
#include "worker/process.hpp"
#include "worker/supervisor.hpp"

namespace strata::worker {
namespace {

// Closes its descriptor; numbers 0 to 2 are avoided, so that dup2 in the child never meets its own source.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) {
    if (number >= 0 && number < 3) {
      number_ = ::fcntl(number, F_DUPFD_CLOEXEC, 3);
      ::close(number);
    } else {
      number_ = number;
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept { std::swap(number_, other.number_); }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

bool make_pipe(Descriptor& reader, Descriptor& writer) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return false;
  }
  reader = Descriptor(ends[0]);
  writer = Descriptor(ends[1]);
  return reader.get() >= 0 && writer.get() >= 0;
}

struct Prepared {
  std::string path;
  std::vector<char*> argv, envp;
  std::vector<std::string> env_text;
  cpu_set_t cpus;
  bool pinned = false;
  std::optional<rlim_t> data_limit;
  pid_t driver = -1;
  int input = -1, output = -1, log = -1, report = -1;
  int rules = -1;  // what confines it
};

Failure cannot_start(State state, std::string what, std::string hint) {
  return {.state = state, .what = std::move(what), .hint = std::move(hint)};
}

// Where a program named without a slash lies; as named otherwise. Empty: nowhere.
std::string find_program(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos) {
    return name;
  }
  const char* path = std::getenv("PATH");
  std::stringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    struct stat info = {};
    if (::stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return {};
}

void prepare_environment(const Launch& launch, const std::string& mark, Prepared& prepared) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (!launch.env.contains(name) && !mark.starts_with(name + "=")) {
      prepared.env_text.push_back(text);
    }
  }
  for (const auto& [name, value] : launch.env) {
    prepared.env_text.push_back(name + "=" + value);
  }
  prepared.env_text.push_back(mark);
  for (std::string& text : prepared.env_text) {
    prepared.envp.push_back(text.data());
  }
  prepared.envp.push_back(nullptr);
}

// The child's side. Never returns; a failure is reported as errno through `report`, which exec closes.
[[noreturn]] void become(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.driver) {
    ::_exit(127);  // the driver died before the line above
  }
  supervisor::guard(::getpid());
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < 32; ++number) {
    ::sigaction(number, &standard, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  bool good = ::dup2(prepared.input, 0) >= 0 && ::dup2(prepared.output, 1) >= 0 && ::dup2(prepared.log, 2) >= 0;
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // whatever else the driver was started with is not the worker's business
  if (good && prepared.data_limit) {
    const rlimit limit = {*prepared.data_limit, *prepared.data_limit};
    good = ::setrlimit(RLIMIT_DATA, &limit) == 0;
  }
  if (good && prepared.pinned) {
    good = ::sched_setaffinity(0, sizeof prepared.cpus, &prepared.cpus) == 0;
  }
  if (good && prepared.rules >= 0) {
    good = enter_confinement(prepared.rules);
  }
  if (good) {
    ::execve(prepared.path.c_str(), prepared.argv.data(), prepared.envp.data());
  }
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(prepared.report, &error, sizeof error);
  ::_exit(127);
}

pid_t fork_worker(const Prepared& prepared) {
  const std::lock_guard lock(left_behind::mutex());
  left_behind::prepare();
  const pid_t child = ::fork();
  if (child == 0) {
    become(prepared);
  }
  if (child > 0) {
    left_behind::add_worker(child);
  }
  return child;
}

// Why exec failed, in words that lead on.
Failure explain(const std::string& path, int error) {
  std::error_code ignored;
  if (error == ENOENT && std::filesystem::exists(path, ignored)) {
    return cannot_start(State::unavailable,
                        fmt::format("cannot execute {}: its interpreter or loader is missing", path),
                        "see its first line, or run it by hand");
  }
  const State state = error == ENOMEM || error == EAGAIN ? State::failed : State::unavailable;
  std::string hint;
  if (error == ENOENT) {
    hint = "build or install it; `strata doctor` says what is missing";
  } else if (error == EACCES) {
    hint = "make it executable (chmod +x), and check that its folder may execute programs";
  } else if (error == EINVAL) {
    hint = "the processors to pin it to may not exist on this machine";
  }
  return cannot_start(state, fmt::format("cannot execute {}: {}", path, std::strerror(error)), hint);
}

tl::expected<Prepared, Failure> prepare(const Launch& launch, const std::string& mark) {
  Prepared prepared;
  if (launch.argv.empty()) {
    return tl::unexpected(cannot_start(State::failed, "no program to start: the command is empty", ""));
  }
  prepared.path = find_program(launch.argv[0]);
  if (prepared.path.empty()) {
    return tl::unexpected(cannot_start(State::unavailable,
                                       fmt::format("cannot execute \"{}\": no such program in PATH", launch.argv[0]),
                                       "install it, or give its full path"));
  }
  for (const std::string& argument : launch.argv) {
    prepared.argv.push_back(const_cast<char*>(argument.c_str()));
  }
  prepared.argv.push_back(nullptr);
  prepare_environment(launch, mark, prepared);
  CPU_ZERO(&prepared.cpus);
  for (const int cpu : launch.cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) {
      return tl::unexpected(cannot_start(
          State::failed, fmt::format("cannot pin to processor {}; allowed are 0 to {}", cpu, CPU_SETSIZE - 1), ""));
    }
    CPU_SET(cpu, &prepared.cpus);
    prepared.pinned = true;
  }
  if (launch.data_limit_bytes) {
    prepared.data_limit = static_cast<rlim_t>(*launch.data_limit_bytes);
  }
  prepared.driver = ::getpid();
  return prepared;
}

// What a process is started with; each end closes itself.
struct Ends {
  Descriptor input_read, input_write, output_read, output_write, report_read, report_write, log, rules;
};

tl::expected<Ends, Failure> open_ends(const Launch& launch, const std::string& path, bool with_input) {
  Ends ends;
  if (launch.writable || !launch.hidden.empty()) {
    auto confinement = make_confinement({.writable = launch.writable, .hidden = launch.hidden});
    if (!confinement) {
      return tl::unexpected(cannot_start(State::failed, confinement.error().what, confinement.error().hint));
    }
    ends.rules = Descriptor(*confinement);
  }
  ends.log = Descriptor(::open(launch.log_path.empty() ? "/dev/null" : launch.log_path.c_str(),
                               O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (ends.log.get() < 0) {
    return tl::unexpected(
        cannot_start(State::failed, fmt::format("cannot write the log {}: {}", launch.log_path, std::strerror(errno)),
                     "check the folder, its permissions and the disk's space"));
  }
  if (with_input) {
    make_pipe(ends.input_read, ends.input_write);
  } else {
    ends.input_read = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  if (!make_pipe(ends.output_read, ends.output_write) || !make_pipe(ends.report_read, ends.report_write) ||
      ends.input_read.get() < 0) {
    return tl::unexpected(cannot_start(State::failed, fmt::format("no pipe for {}: {}", path, std::strerror(errno)),
                                       "too many open files? see ulimit -n"));
  }
  if (launch.discards_output) ends.output_write = Descriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  return ends;
}

// The error number of an exec that failed; 0: the program runs. Waits for either.
int exec_error(const Descriptor& report) {
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(report.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  return got == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

tl::expected<std::unique_ptr<Process>, Failure> Process::spawn(const Launch& launch, bool with_input) {
  const std::string mark = next_mark();
  auto prepared = STRATA_TRY(prepare(launch, mark));
  auto ends = STRATA_TRY(open_ends(launch, prepared.path, with_input));
  prepared.rules = ends.rules.get();
  prepared.input = ends.input_read.get();
  prepared.output = ends.output_write.get();
  prepared.log = ends.log.get();
  prepared.report = ends.report_write.get();
  supervisor::ensure();
  const pid_t child = fork_worker(prepared);
  if (child < 0) {
    return tl::unexpected(cannot_start(State::failed,
                                       fmt::format("cannot start {}: {}", prepared.path, std::strerror(errno)),
                                       "too many processes, or too little memory"));
  }
  ::setpgid(child, child);
  std::unique_ptr<Process> process(new Process());
  process->pid_ = child;
  process->log_path_ = launch.log_path;
  process->mark_ = mark;
  process->starts_others_ = launch.starts_others;
  process->log_ = ends.log.release();
  process->data_limit_ = launch.data_limit_bytes;
  ends.report_write = Descriptor();  // closed here, so that the read below ends at exec
  if (const int error = exec_error(ends.report_read); error != 0) {
    return tl::unexpected(explain(prepared.path, error));
  }
  process->input_ = ends.input_write.release();
  process->output_ = ends.output_read.release();
  if (process->input_ >= 0) {
    ::fcntl(process->input_, F_SETFL, O_NONBLOCK);
  }
  ::fcntl(process->output_, F_SETFL, O_NONBLOCK);
  process->pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  return process;
}

}  // namespace strata::worker
