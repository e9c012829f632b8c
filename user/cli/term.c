// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/canvas.h"

/* xterm's private modes: the other screen, the cursor, wrapping at the edge. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[?7h\033[?25h\033[0m\033[?1049l"

struct sb_term {
	int in_fd, epoll_fd, signal_fd;
	int held_fd; /* messages; -1: they do not go to the terminal */
	unsigned char bytes[64];
	size_t nr_bytes, at;
	bool has_colour, is_redraw_due;
	struct sb_canvas shown; /* cells NULL: not known */
	struct sb_str text;
};

/* What a signal handler needs. */
static volatile sig_atomic_t is_entered;
static struct termios saved;
static int saved_fd;

bool sb_term_is_there(int fd)
{
	const char *name = getenv("TERM");

	return isatty(fd) && name && *name && !sb_streq(name, "dumb");
}

void sb_term_restore(void)
{
	if (!is_entered)
		return;
	is_entered = 0;
	(void)!write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
	tcsetattr(saved_fd, TCSANOW, &saved);
}

static void restore_and_end(int sig)
{
	sb_term_restore();
	/* The handler is gone: SA_RESETHAND. */
	raise(sig);
}

/* What ends us and does not come to the loop. */
static int catch_ends(void)
{
	static const int ends[] = { SIGHUP, SIGQUIT, SIGILL,  SIGABRT,
				    SIGBUS, SIGFPE,  SIGSEGV, SIGSYS };
	struct sigaction action = { .sa_handler = restore_and_end, .sa_flags = SA_RESETHAND };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(ends); i++)
		if (sigaction(ends[i], &action, NULL))
			return -errno;
	return 0;
}

static int watch(const struct sb_term *term, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(term->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_fds(struct sb_term *term)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTSTP);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	term->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	term->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (term->signal_fd < 0 || term->epoll_fd < 0)
		return -errno;
	/* What is read may be piped in, and the keys are pressed elsewhere. */
	term->in_fd = isatty(STDIN_FILENO) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
					   : open("/dev/tty", O_RDWR | O_CLOEXEC);
	err = watch(term, term->signal_fd);
	if (!err && term->in_fd >= 0)
		err = watch(term, term->in_fd);
	if (!err && isatty(STDERR_FILENO)) {
		term->held_fd = memfd_create("messages", MFD_CLOEXEC);
		err = term->held_fd < 0 ? -errno : 0;
	}
	return err;
}

int sb_term_new(struct sb_term **ret_term)
{
	const char *no_colour = getenv("NO_COLOR");
	struct sb_term *term = calloc(1, sizeof(*term));
	int err;

	if (!term)
		return -ENOMEM;
	term->in_fd = term->epoll_fd = term->signal_fd = term->held_fd = -1;
	term->has_colour = !no_colour || !*no_colour;
	err = open_fds(term);
	if (!err)
		err = catch_ends();
	if (err) {
		sb_term_free(term);
		return err;
	}
	*ret_term = term;
	return 0;
}

void sb_term_free(struct sb_term *term)
{
	if (!term)
		return;
	sb_term_leave(term);
	sb_closep(&term->in_fd);
	sb_closep(&term->epoll_fd);
	sb_closep(&term->signal_fd);
	sb_closep(&term->held_fd);
	sb_canvas_release(&term->shown);
	sb_str_release(&term->text);
	free(term);
}

int sb_term_fd(const struct sb_term *term)
{
	return term->epoll_fd;
}

void sb_term_size(const struct sb_term *term, int *ret_nr_cols, int *ret_nr_rows)
{
	struct winsize size;

	*ret_nr_cols = 80;
	*ret_nr_rows = 24;
	/* A serial line does not know. */
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
		return;
	*ret_nr_cols = size.ws_col;
	*ret_nr_rows = size.ws_row;
}

static int enter(struct sb_term *term)
{
	struct termios keys;

	saved_fd = term->in_fd >= 0 ? term->in_fd : STDOUT_FILENO;
	if (tcgetattr(saved_fd, &saved))
		return -errno;
	keys = saved;
	/* Ctrl-C, Ctrl-Z and Ctrl-\ remain signals. */
	keys.c_iflag &= ~(tcflag_t)(ICRNL | INLCR);
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 1;
	keys.c_cc[VTIME] = 0;
	is_entered = 1;
	if (tcsetattr(saved_fd, TCSANOW, &keys)) {
		is_entered = 0;
		return -errno;
	}
	if (term->held_fd >= 0)
		sb_log_to(term->held_fd);
	sb_canvas_release(&term->shown);
	return sb_write_all(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1);
}

/* What was said meanwhile. */
static void tell(struct sb_term *term)
{
	char piece[4096];
	ssize_t nr_bytes;

	if (term->held_fd < 0)
		return;
	sb_log_to(STDERR_FILENO);
	lseek(term->held_fd, 0, SEEK_SET);
	while ((nr_bytes = read(term->held_fd, piece, sizeof(piece))) > 0)
		if (sb_write_all(STDERR_FILENO, piece, (size_t)nr_bytes))
			break;
	/* Not twice. */
	sb_closep(&term->held_fd);
	term->held_fd = -1;
}

void sb_term_leave(struct sb_term *term)
{
	sb_term_restore();
	tell(term);
}

static int draw(struct sb_term *term, const struct sb_canvas *canvas)
{
	bool is_known = term->shown.cells && term->shown.nr_cols == canvas->nr_cols &&
			term->shown.nr_rows == canvas->nr_rows && !term->is_redraw_due;
	int err;

	sb_str_clear(&term->text);
	err = is_known ? 0 : sb_str_add(&term->text, "\033[2J");
	if (!err)
		err = sb_canvas_render(canvas, is_known ? &term->shown : NULL, term->has_colour,
				       &term->text);
	if (!err && term->text.len)
		err = sb_write_all(STDOUT_FILENO, term->text.s, term->text.len);
	if (!err)
		err = sb_canvas_resize(&term->shown, canvas->nr_cols, canvas->nr_rows);
	if (err)
		return err;
	memcpy(term->shown.cells, canvas->cells,
	       (size_t)canvas->nr_cols * (size_t)canvas->nr_rows * sizeof(*canvas->cells));
	term->is_redraw_due = false;
	return 0;
}

int sb_term_show(struct sb_term *term, const struct sb_canvas *canvas)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	int err = is_entered ? 0 : enter(term);

	if (err)
		return err;
	/* Ctrl-S, a connection that is stuck: samples would be lost while we wait. */
	if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
		return out.revents & (POLLERR | POLLHUP) ? -EIO : 0;
	return draw(term, canvas);
}

static void on_signal(struct sb_term *term)
{
	struct signalfd_siginfo info;

	while (read(term->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTSTP) {
			sb_term_restore();
			raise(SIGSTOP);
		}
		term->is_redraw_due = true;
	}
}

int sb_term_read(struct sb_term *term)
{
	struct epoll_event events[2];
	struct pollfd in = { .fd = term->in_fd, .events = POLLIN };
	ssize_t nr_bytes;

	/* Both are looked at, whichever it was: neither blocks. */
	(void)epoll_wait(term->epoll_fd, events, 2, 0);
	on_signal(term);
	term->nr_bytes = term->at = 0;
	if (term->in_fd < 0 || poll(&in, 1, 0) <= 0)
		return 0;
	nr_bytes = read(term->in_fd, term->bytes, sizeof(term->bytes));
	if (nr_bytes < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (nr_bytes <= 0)
		return nr_bytes ? -errno : -EIO;
	term->nr_bytes = (size_t)nr_bytes;
	return 0;
}

/* What stands between ESC [ and the end, and the end: xterm's and the VT220's. */
static const struct {
	const char *sequence;
	int key;
} sequences[] = {
	{ "A", SB_KEY_UP },    { "B", SB_KEY_DOWN },	 { "C", SB_KEY_RIGHT },
	{ "D", SB_KEY_LEFT },  { "H", SB_KEY_HOME },	 { "F", SB_KEY_END },
	{ "1~", SB_KEY_HOME }, { "4~", SB_KEY_END },	 { "7~", SB_KEY_HOME },
	{ "8~", SB_KEY_END },  { "5~", SB_KEY_PAGE_UP }, { "6~", SB_KEY_PAGE_DOWN },
};

int sb_term_parse_key(const unsigned char *bytes, size_t nr, size_t *ret_len)
{
	size_t end = 2, i;

	*ret_len = 1;
	if (bytes[0] == '\n')
		return SB_KEY_ENTER;
	if (bytes[0] == '\b')
		return SB_KEY_BACKSPACE;
	if (bytes[0] != SB_KEY_ESCAPE || nr < 2 || (bytes[1] != '[' && bytes[1] != 'O'))
		return bytes[0] ? bytes[0] : SB_KEY_UNKNOWN;
	/* ECMA-48, 5.4: parameters, then a byte from @ to ~. */
	while (end < nr && (bytes[end] < '@' || bytes[end] > '~'))
		end++;
	*ret_len = end < nr ? end + 1 : nr;
	for (i = 0; i < SB_ARRAY_SIZE(sequences); i++)
		if (strlen(sequences[i].sequence) == *ret_len - 2 &&
		    !memcmp(sequences[i].sequence, bytes + 2, *ret_len - 2))
			return sequences[i].key;
	return SB_KEY_UNKNOWN;
}

int sb_term_key(struct sb_term *term)
{
	size_t len;
	int key;

	if (term->at >= term->nr_bytes)
		return term->is_redraw_due ? SB_KEY_REDRAW : SB_KEY_NONE;
	key = sb_term_parse_key(term->bytes + term->at, term->nr_bytes - term->at, &len);
	term->at += len;
	return key;
}
