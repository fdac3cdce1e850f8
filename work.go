package soloist

// Work is a [Job] or a [Singleton].
type Work interface{ work() }

func (Job) work()       {}
func (Singleton) work() {}
