// SPDX-License-Identifier: Apache-2.0
// A store's file, opened: its schema as this strata has it, nothing in it believed that strata did not write, a store
// that another program holds waited for. Internal to store/.
#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "common/result.hpp"
#include "common/scratch_folder.hpp"

namespace strata::store {

struct Watch;  // what SQLite calls while it waits and while it reads

class Connection {
 public:
  // Makes the file where it is missing. For reading: never changes what is stored, and needs no right to write; an
  // interrupt ends what is being read.
  static Result<Connection> to_write(const std::filesystem::path& path);
  static Result<Connection> to_read(const std::filesystem::path& path);
  // For reading, of a file that to_write would take; nullopt: it would begin a store there. Changes nothing.
  static Result<std::optional<Connection>> to_look_at(const std::filesystem::path& path);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  sqlite3* handle() const { return handle_.get(); }
  const std::filesystem::path& path() const { return path_; }
  // What SQLite says went wrong last, with what to do. Exit code 1.
  tl::unexpected<Error> broken(std::string_view doing) const;
  // The same for what was found in the file.
  tl::unexpected<Error> damaged(const std::string& what) const;
  // Reads the whole file, as SQLite checks it.
  Result<void> check_integrity() const;

 private:
  enum class Origin { nobody, own };
  explicit Connection(std::filesystem::path path);
  Result<void> open(const std::string& name, int flags);
  Result<void> execute(const char* sql, std::string_view doing);
  Result<Origin> origin();
  Result<void> make_schema();
  Result<void> check_schema();
  Result<void> check_size() const;
  Result<void> open_without_rights(const Error& why);

  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  // In this order: the handle goes before what it uses.
  std::filesystem::path path_;
  std::unique_ptr<ScratchFolder> copy_;  // of a store in a folder where SQLite cannot work
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace strata::store
